/** Runs one attack against the real program, newly started with the options of `npm start`, beside one well-behaved client. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createUser } from '../../src/authorization/accounts/user-store.ts';
import { createPersonalToken } from '../../src/authorization/tokens/personal-token.ts';
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/startup/open-store.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { realWorld } from '../../src/world.ts';
import { type Program, startProgram } from '../../test/support/programs/start-program.ts';
import { readPeakRssMb } from '../support/peak-memory.ts';
import type { Attack } from './attack.ts';
import type { Experience } from './good-client.ts';
import { startGoodClient } from './good-client-process.ts';

export interface Measured {
  readonly attack: string;
  readonly auth: string;
  readonly alone: Experience;
  readonly during: Experience;
  /** p99 during the attack divided by p99 without it. */
  readonly ratio: number;
  readonly maxRatio: number;
  readonly peakRssMb: number;
  readonly hasDied: boolean;
  /** The share of the attack's time in which the program's main thread waited for a core. */
  readonly noCoreShare: number;
  /** The share of one core that the attacker got. */
  readonly attackerShare: number;
}

export interface Plan {
  readonly attack: Attack;
  readonly auth: 'on' | 'off';
  readonly aloneMs: number;
  readonly duringMs: number;
}

/** The first calls are slow, since V8 has not compiled their code yet. */
const WARM_UP_MS = 1500;
const MAX_RATIO = 3;
const TICKS_PER_SECOND = 100;

/** `minP99Ms` replaces a smaller p99 without the attack. */
export async function measureAttack(plan: Plan, minP99Ms: number): Promise<Measured> {
  const { attack, auth, aloneMs, duringMs } = plan;
  await using program = await startProgram({ PREDICTION_AUTH: auth, LOG_LEVEL: 'silent' });
  const token = auth === 'on' ? await createToken(program) : undefined;
  using client = startGoodClient(program, token);
  await client.measure(WARM_UP_MS);
  const isPreferred = preferToOtherPrograms([program.pid, client.pid]);
  const alone = await client.measure(aloneMs);
  const startedMs = performance.now();
  const noCoreBeforeMs = readNoCoreMs(program.pid);
  const attacker = startAttacker(attack.name, program, isPreferred);
  const during = await client.measure(duringMs);
  const elapsedMs = performance.now() - startedMs;
  const attackerMs = readProcessorMs(attacker.pid ?? 0);
  attacker.kill('SIGKILL');
  const peakRssMb = readPeakRssMb(program.pid);
  return {
    attack: attack.name,
    auth,
    alone,
    during,
    ratio: during.p99Ms / Math.max(alone.p99Ms, minP99Ms),
    maxRatio: attack.maxRatio ?? MAX_RATIO,
    peakRssMb: peakRssMb ?? Number.NaN,
    hasDied: peakRssMb === undefined,
    noCoreShare: (readNoCoreMs(program.pid) - noCoreBeforeMs) / elapsedMs,
    attackerShare: attackerMs / elapsedMs,
  };
}

/**
 * The processor time that attackers and other programs take is no property of the service. So the main threads of the program and of
 * the client get a core before all others, and their other threads before others of the usual class. Needs root; returns false
 * without it.
 */
function preferToOtherPrograms(pids: readonly number[]): boolean {
  let isPreferred = true;
  for (const pid of pids)
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const [command, ...options] =
        thread === String(pid) ? ['chrt', '--reset-on-fork', '--rr', '-p', '1'] : ['renice', '-n', '-20', '-p'];
      isPreferred &&= spawnSync(command!, [...options, thread]).status === 0;
    }
  return isPreferred;
}

const REALTIME_LIMIT = '/proc/sys/kernel/sched_rt_runtime_us';

/**
 * Lifts the kernel's limit on real-time threads, which it stops for 50 ms of each second in which they use a whole core. A program
 * under attack does, and its callers would wait for the kernel. The limit is restored when this process ends. Needs root; without
 * it, `preferToOtherPrograms` sets no such class.
 */
export function liftRealtimeLimit(): void {
  const former = readText(REALTIME_LIMIT);
  if (former === '' || process.getuid?.() !== 0) return;
  writeFileSync(REALTIME_LIMIT, '-1');
  process.once('exit', () => writeFileSync(REALTIME_LIMIT, former));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
}

/**
 * A real attacker uses another machine, so here it must not take cores from the measured processes. Where these cannot be preferred,
 * it only gets a core that is otherwise idle (SCHED_IDLE), which `chrt` sets before it starts.
 */
function startAttacker(name: string, program: Program, isProgramPreferred: boolean): ChildProcess {
  const ports = [program.grpcAddress, program.httpUrl].map((address) => /\d+$/.exec(address)?.[0] ?? '');
  const command = [process.execPath, new URL('attacker.ts', import.meta.url).pathname, name, ...ports];
  const [file, ...parameters] = isProgramPreferred ? command : ['chrt', '--idle', '0', ...command];
  return spawn(file!, parameters, { stdio: 'ignore' });
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

/** How long the main thread was ready to run but had no core, since its start. */
function readNoCoreMs(pid: number): number {
  const nanoseconds = readProcess(pid, `task/${pid}/schedstat`).split(' ')[1];
  return Number(nanoseconds ?? Number.NaN) / 1e6;
}

/** Processor time of all threads since the start of the process. */
function readProcessorMs(pid: number): number {
  const fields = readProcess(pid, 'stat').split(') ')[1]?.split(' ') ?? [];
  return (1000 * (Number(fields[11]) + Number(fields[12]))) / TICKS_PER_SECOND;
}

function readProcess(pid: number, file: string): string {
  return readText(`/proc/${pid}/${file}`);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
