import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createUser } from '../../src/authorization/accounts/user-store.ts';
import { createPersonalToken } from '../../src/authorization/tokens/personal-token.ts';
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/startup/open-store.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { realWorld } from '../../src/world.ts';
import { type Program, startProgram } from '../../test/support/start-program.ts';
import { connectGoodClient, type Experience } from './good-client.ts';

export interface Measured {
  readonly attack: string;
  readonly auth: string;
  readonly alone: Experience;
  readonly during: Experience;
  readonly peakRssMb: number;
  readonly hasDied: boolean;
}

export interface Plan {
  readonly attack: string;
  readonly auth: 'on' | 'off';
  readonly aloneMs: number;
  readonly duringMs: number;
}

const WARM_UP_MS = 1000;

/** The real program, afresh, beside one client that behaves. */
export async function measureAttack({ attack, auth, aloneMs, duringMs }: Plan): Promise<Measured> {
  await using program = await startProgram({ PREDICTION_AUTH: auth, LOG_LEVEL: 'silent' });
  const token = auth === 'on' ? await createToken(program) : undefined;
  using client = connectGoodClient(program, token);
  await client.measure(WARM_UP_MS);
  const alone = await client.measure(aloneMs);
  const stop = startAttacker(attack, program);
  const during = await client.measure(duringMs);
  stop();
  const peakRssMb = readPeakRssMb(program.pid);
  return { attack, auth, alone, during, peakRssMb: peakRssMb ?? Number.NaN, hasDied: peakRssMb === undefined };
}

function startAttacker(attack: string, program: Program): () => void {
  const ports = [program.grpcAddress, program.httpUrl].map((address) => /\d+$/.exec(address)?.[0] ?? '');
  const child = fork(new URL('attacker.ts', import.meta.url).pathname, [attack, ...ports]);
  return () => child.kill('SIGKILL');
}

async function createToken({ dataDir }: Program): Promise<string> {
  await using store = await openStore({ dataDir, migrations, world: realWorld, log: createLog('warn') });
  const blank = { name: 'bench', email: null, isAdmin: false, passwordHash: null };
  const user = await createUser(store, realWorld, { login: 'bench', ...blank });
  const { secret } = await createPersonalToken(store, realWorld, {
    userId: user.id,
    name: 'bench',
    scopes: ['all_projects'],
    expiresAtMs: undefined,
  });
  return secret;
}

/** The most that the process ever had; undefined when it is gone. */
function readPeakRssMb(pid: number): number | undefined {
  try {
    const kilobytes = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
  } catch {
    return undefined;
  }
}
