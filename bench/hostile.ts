/**
 * Measures what misbehaving receivers cost the others: the real program, events over its API, and deliveries to healthy
 * endpoints alone and then beside endpoints of every hostile kind at once. Then it measures 10,000 refused certificates.
 *
 * `node bench/hostile.ts [--seconds 20] [--refusals 10000] [--json]`
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createUser } from '../src/authorization/accounts/user-store.ts';
import { createPersonalToken } from '../src/authorization/tokens/personal-token.ts';
import { formatTable } from '../src/command-line/output.ts';
import { migrations } from '../src/database/migrations/list.ts';
import { openStore } from '../src/database/startup/open-store.ts';
import { createLog } from '../src/telemetry/log.ts';
import { createAddressGuard } from '../src/webhooks/addresses/address-guard.ts';
import { createSender } from '../src/webhooks/delivery/send/send.ts';
import { createSampleEvent } from '../src/webhooks/events/sample-event.ts';
import { realWorld } from '../src/world.ts';
import { createDataDir, type Program, startProgram } from '../test/support/programs/start-program.ts';
import { readBenchFlags } from './support/bench-flags.ts';
import { callAtRate } from './support/call-at-rate.ts';
import { readPeakRssMb, resetPeakRss } from './support/peak-memory.ts';
import { countMissing, findArrival, listFirstArrivals, takePercentile } from './webhooks/arrivals.ts';
import type { HostileReceivers } from './webhooks/hostile-receivers.ts';
import { readRssMb, startReceiver } from './webhooks/processes.ts';

const { values: flags } = readBenchFlags({
  options: {
    seconds: { type: 'string', default: '20' },
    refusals: { type: 'string', default: '10000' },
    json: { type: 'boolean', default: false },
  },
});
const seconds = Number(flags.seconds);
const refusals = Number(flags.refusals);

/** Each event goes to 16 healthy endpoints. */
const HEALTHY_EVENTS_A_SECOND = 10;
const HOSTILE_EVENTS_A_SECOND = 2;
const HOOKS_OF_A_KIND = 4;
/** Owners of the hostile endpoints; each may occupy at most 32 of the 256 deliveries that are under way. */
const HOSTILE_OWNERS = 4;
const ALLOWED = '127.0.0.0/8,192.0.2.0/24';
const push = createSampleEvent('push', { username: 'bench', name: 'Bench' }, 'main', Date.UTC(2026, 0, 1));

interface Client {
  readonly login: string;
  call(method: string, path: string, body: object): Promise<Record<string, unknown>>;
}

async function createClients(program: Program, logins: readonly string[]): Promise<Client[]> {
  const { dataDir } = program;
  await using store = await openStore({ dataDir, migrations, world: realWorld, log: createLog('warn') });
  return await Promise.all(
    logins.map(async (login) => {
      const blank = { name: login, email: null, isAdmin: false, passwordHash: null };
      const user = await createUser(store, realWorld, { login, ...blank });
      const { secret } = await createPersonalToken(store, realWorld, {
        userId: user.id,
        name: 'bench',
        scopes: ['all_hook', 'all_projects'],
        expiresAtMs: undefined,
      });
      return { login, call: (method, path, body) => call(program.httpUrl + path, { method, token: secret, body }) };
    }),
  );
}

async function call(url: string, { method, token, body }: { method: string; token: string; body: object }) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(url, { method, headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}

async function createRepository(client: Client, name: string, urls: readonly string[]): Promise<string> {
  await client.call('POST', '/api/v5/user/repos', { name });
  const path = `/api/v5/repos/${client.login}/${name}`;
  for (const url of urls) await client.call('POST', `${path}/hooks`, { url, encryption_type: 1, password: 'key' });
  return `${path}/events`;
}

/** Posts events at a fixed rate, independent of the answers, until the time is over; returns when each delivery's event was due. */
async function post(client: Client, paths: readonly string[], perSecond: number): Promise<Map<string, number>> {
  const dueAtByUuid = new Map<string, number>();
  const postOne = async (path: string, dueMs: number): Promise<void> => {
    const { deliveries } = (await client.call('POST', path, push)) as { deliveries?: { uuid: string }[] };
    for (const { uuid } of deliveries ?? []) dueAtByUuid.set(uuid, performance.timeOrigin + dueMs);
  };
  const posts: Promise<void>[] = [];
  await callAtRate({ perSecond, count: perSecond * seconds }, (dueMs) => {
    posts.push(...paths.map((path) => postOne(path, dueMs)));
  });
  await Promise.all(posts);
  return dueAtByUuid;
}

async function startHostile(): Promise<{ child: ChildProcess; receivers: HostileReceivers }> {
  const child = fork(join(import.meta.dirname, 'webhooks/hostile-receivers.ts'), { stdio: 'inherit' });
  const [receivers] = (await once(child, 'message')) as [HostileReceivers];
  return { child, receivers };
}

interface Figures {
  readonly run: string;
  readonly deliveries: number;
  readonly missing: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly peakRssMb: number;
}

async function measureHealthy(
  program: Program,
  run: string,
  load: () => Promise<Map<string, number>>,
  arrivedAt: () => Promise<Map<string, number>>,
): Promise<Figures> {
  resetPeakRss(program.pid);
  const dueAtByUuid = await load();
  // By now the last deliveries have arrived, or are late enough to count as missing.
  await realWorld.sleep(2000);
  const arrivals = await arrivedAt();
  const delays = [...dueAtByUuid].map(([uuid, atMs]) => findArrival(arrivals, uuid) - atMs);
  const [p50Ms = 0, p99Ms = 0] = [0.5, 0.99].map((share) => takePercentile(delays, share));
  const peakRssMb = readPeakRssMb(program.pid) ?? Number.NaN;
  return { run, deliveries: delays.length, missing: countMissing(delays), p50Ms, p99Ms, peakRssMb };
}

async function measureBeside(hostile: HostileReceivers): Promise<Figures[]> {
  const dataDir = createDataDir();
  const caFile = join(dataDir, 'trusted.pem');
  writeFileSync(caFile, hostile.trusted);
  const environment = { WEBHOOK_ALLOW_CIDRS: ALLOWED, LOG_LEVEL: 'error', NODE_EXTRA_CA_CERTS: caFile };
  const program = await startProgram(environment, dataDir);
  const receiver = await startReceiver();
  const owners = Array.from({ length: HOSTILE_OWNERS }, (_, index) => `mallory${index}`);
  const [grace, ...mallories] = await createClients(program, ['grace', ...owners]);
  const healthyUrls = receiver.ports.slice(0, 16).map((port) => `http://127.0.0.1:${port}/`);
  const events = await createRepository(grace!, 'doors', healthyUrls);
  const readArrivals = async () => listFirstArrivals(await receiver.report());
  const loadHealthy = () => post(grace!, [events], HEALTHY_EVENTS_A_SECOND);

  await loadHealthyBriefly(grace!, events);
  const alone = await measureHealthy(program, 'healthy alone', loadHealthy, readArrivals);
  const hostilePaths = new Map<Client, string[]>(mallories.map((client) => [client, []]));
  for (const [index, [kind, url]] of Object.entries(hostile.urlByKind).entries()) {
    const client = mallories[index % HOSTILE_OWNERS]!;
    const urls = Array.from({ length: HOOKS_OF_A_KIND }, (_, hook) => `${url}${hook}`);
    hostilePaths.get(client)?.push(await createRepository(client, kind.toLowerCase().replaceAll(' ', '-'), urls));
  }
  const beside = await measureHealthy(
    program,
    `beside ${Object.keys(hostile.urlByKind).length} hostile kinds`,
    async () => {
      const hostileLoads = [...hostilePaths].map(([client, paths]) => post(client, paths, HOSTILE_EVENTS_A_SECOND));
      const dueAt = await loadHealthy();
      await Promise.all(hostileLoads);
      return dueAt;
    },
    readArrivals,
  );
  await program.stop();
  receiver.stop();
  rmSync(dataDir, { recursive: true, force: true });
  return [alone, beside];
}

/** A warm-up, since code that has never run is slow. */
async function loadHealthyBriefly(client: Client, path: string): Promise<void> {
  for (let count = 0; count < 30; count += 1) await client.call('POST', path, push);
}

interface RefusalFigures {
  readonly refusals: number;
  readonly perSecond: number;
  readonly rssMbAfterTenth: number;
  readonly rssMbAtEnd: number;
}

/** Uses the sender alone: in the program, circuit breakers would hold back all but the first few. */
async function measureRefusals({ urlByKind }: HostileReceivers): Promise<RefusalFigures> {
  const urls = Object.entries(urlByKind).flatMap(([kind, url]) => (kind.includes('certificate') ? [url] : []));
  const guard = createAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  const sender = createSender({ guard, nowMs: Date.now, monotonicMs: () => performance.now() });
  const startMs = performance.now();
  let rssMbAfterTenth = 0;
  for (let count = 0; count < refusals; count += 8) {
    const batch = Array.from({ length: 8 }, async (_, index) => {
      const url = urls[(count + index) % urls.length]!;
      const report = await sender.send({ deliveryId: count + index, url, headers: {}, body: Buffer.from('{}') });
      if (report.outcome.kind !== 'unreachable') throw new Error(`${url} was not refused`);
    });
    await Promise.all(batch);
    if (rssMbAfterTenth === 0 && count >= refusals / 10) rssMbAfterTenth = readRssMb(process.pid);
  }
  const perSecond = Math.round(refusals / ((performance.now() - startMs) / 1000));
  await sender.close();
  return { refusals, perSecond, rssMbAfterTenth, rssMbAtEnd: readRssMb(process.pid) };
}

const { child, receivers } = await startHostile();
const beside = await measureBeside(receivers);
const refused = await measureRefusals(receivers);
child.kill();
if (flags.json) process.stdout.write(`${JSON.stringify({ beside, refused })}\n`);
else {
  for (const rows of [beside, [refused]])
    process.stdout.write(
      `${formatTable(
        Object.keys(rows[0]!),
        rows.map((row) => Object.values(row) as number[]),
      )}\n\n`,
    );
}
process.exit(0);
