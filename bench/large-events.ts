/**
 * Measures what one owner's large events cost another owner: the real program, an owner who sends events of 900 KB to 50 webhooks
 * without pause, and a bystander whose small events are timed from request to answer, alone and then during this load.
 * Attacker, receiver and bystander are separate processes.
 *
 * `node bench/large-events.ts [--only sqlite,postgres] [--callers 16] [--hooks 50] [--bytes 900000] [--seconds 20] [--json]`
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createUser } from '../src/authorization/accounts/user-store.ts';
import { createPersonalToken } from '../src/authorization/tokens/personal-token.ts';
import { formatTable } from '../src/command-line/output.ts';
import { createSampleEvent } from '../src/webhooks/events/sample-event.ts';
import { realWorld } from '../src/world.ts';
import { createDataDir, type Program, startProgram } from '../test/support/programs/start-program.ts';
import { openTestStore, type StorePlace } from '../test/support/store/engines.ts';
import {
  createTestDatabase,
  type PostgresCluster,
  startPostgresCluster,
} from '../test/support/store/postgres-cluster.ts';
import { readBenchFlags } from './support/bench-flags.ts';
import { callAtRate } from './support/call-at-rate.ts';
import { NEW_POSTGRES } from './support/new-postgres.ts';
import { readPeakRssMb, resetPeakRss } from './support/peak-memory.ts';
import { takePercentile } from './webhooks/arrivals.ts';
import type { Attack } from './webhooks/large-events-roles.ts';

const { values: flags } = readBenchFlags({
  options: {
    json: { type: 'boolean', default: false },
    only: { type: 'string', default: 'sqlite,postgres' },
    callers: { type: 'string', default: '16' },
    hooks: { type: 'string', default: '50' },
    bytes: { type: 'string', default: '900000' },
    seconds: { type: 'string', default: '20' },
  },
});
const EVENTS_A_SECOND = 10;
const event = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));

interface Person {
  readonly eventsUrl: string;
  readonly token: string;
}

async function createPerson(place: StorePlace, program: Program, login: string, urls: string[]): Promise<Person> {
  const token = await createToken(place, login);
  const call = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(program.httpUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  };
  await call('/api/v5/user/repos', { name: 'doors' });
  const path = `/api/v5/repos/${login}/doors`;
  for (const url of urls) await call(`${path}/hooks`, { url, password: 'key' });
  return { eventsUrl: `${program.httpUrl}${path}/events`, token };
}

async function createToken(place: StorePlace, login: string): Promise<string> {
  await using store = await openTestStore(place);
  const blank = { name: login, email: null, isAdmin: false, passwordHash: null };
  const { id: userId } = await createUser(store, realWorld, { login, ...blank });
  const scopes = ['all_hook', 'all_projects'] as const;
  return (await createPersonalToken(store, realWorld, { userId, name: 'bench', scopes, expiresAtMs: undefined }))
    .secret;
}

interface Figures {
  readonly run: string;
  readonly events: number;
  readonly refused: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly peakRssMb: number;
}

/** Sends an event every 100 ms, independent of the answers; its time counts from when it was due. */
async function timeEvents(run: string, program: Program, { eventsUrl, token }: Person): Promise<Figures> {
  const tookMs: number[] = [];
  let refused = 0;
  resetPeakRss(program.pid);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = async (dueMs: number) => {
    const response = await fetch(eventsUrl, { method: 'POST', headers, body: JSON.stringify(event) });
    await response.text();
    tookMs.push(performance.now() - dueMs);
    if (response.status !== 202) refused += 1;
  };
  const posts: Promise<void>[] = [];
  await callAtRate({ perSecond: EVENTS_A_SECOND, count: EVENTS_A_SECOND * Number(flags.seconds) }, (dueMs) => {
    posts.push(post(dueMs));
  });
  await Promise.all(posts);
  const [p50Ms = 0, p99Ms = 0, maxMs = 0] = [0.5, 0.99, 1].map((share) => takePercentile(tookMs, share));
  return {
    run,
    events: tookMs.length,
    refused,
    p50Ms,
    p99Ms,
    maxMs,
    peakRssMb: readPeakRssMb(program.pid) ?? Number.NaN,
  };
}

function startRole(role: 'attack' | 'receive'): ChildProcess {
  return fork(join(import.meta.dirname, 'webhooks/large-events-roles.ts'), [role], { stdio: 'inherit' });
}

let cluster: PostgresCluster | undefined;

async function createPlace(engine: string): Promise<StorePlace> {
  const dataDir = createDataDir();
  if (engine === 'sqlite') return { dataDir, databaseUrl: undefined };
  cluster ??= await startPostgresCluster(NEW_POSTGRES);
  return { dataDir, databaseUrl: await createTestDatabase(cluster.socketDir, `large_${Date.now()}`) };
}

async function measure(engine: string): Promise<Figures[]> {
  const place = await createPlace(engine);
  const environment = {
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    LOG_LEVEL: 'error',
    ...(place.databaseUrl === undefined ? {} : { DATABASE_URL: place.databaseUrl }),
  };
  await using program = await startProgram(environment, place.dataDir);
  const receiver = startRole('receive');
  const [{ port }] = (await once(receiver, 'message')) as [{ port: number }];
  const urls = Array.from({ length: Number(flags.hooks) }, (_, index) => `http://127.0.0.1:${port}/${index}`);
  const grace = await createPerson(place, program, 'grace', [`http://127.0.0.1:${port}/grace`]);
  const mallory = await createPerson(place, program, 'mallory', urls);
  const alone = await timeEvents(`${engine}, alone`, program, grace);
  const attacker = startRole('attack');
  const { eventsUrl: url, token } = mallory;
  attacker.send({ url, token, callers: Number(flags.callers), bytes: Number(flags.bytes), event } satisfies Attack);
  const beside = await timeEvents(`${engine}, beside large events`, program, grace);
  attacker.send('counts');
  const [counts] = (await once(attacker, 'message')) as [Record<string, number>];
  attacker.kill();
  receiver.kill();
  process.stderr.write(`${engine}: answers to the large events ${JSON.stringify(counts)}\n`);
  return [alone, beside];
}

const results: Figures[] = [];
for (const engine of flags.only.split(',')) results.push(...(await measure(engine)));
await cluster?.stop();
if (flags.json) process.stdout.write(`${JSON.stringify({ date: new Date().toISOString(), results })}\n`);
else {
  const headings = Object.keys(results[0] ?? {}) as (keyof Figures)[];
  process.stdout.write(
    `${formatTable(
      headings,
      results.map((result) => headings.map((heading) => result[heading])),
    )}\n`,
  );
}
process.exit(0);
