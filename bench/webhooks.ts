/**
 * How fast deliveries leave, on SQLite and PostgreSQL, beside pg-boss (on the same PostgreSQL) and BullMQ (on Redis) that
 * drive the same sender. PostgreSQL and Redis come from the system's packages and are started here, with fsync.
 *
 * `node bench/webhooks.ts [--json] [--run drain,slow,steady,backlog] [--count 10000] [--pending 1000000] [--seconds 20]`
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { cpus, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { formatTable } from '../src/cli/output.ts';
import { createTestDatabase, type PostgresCluster, startPostgresCluster } from '../test/support/postgres-cluster.ts';
import type { BenchHook, BenchJob, EngineCommand, EngineOptions } from './webhooks/engine.ts';
import type { Arrival, ReceiverCommand } from './webhooks/receiver.ts';
import { readUuids, seedBacklog } from './webhooks/seed-backlog.ts';

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    run: { type: 'string', default: 'drain,slow,steady,backlog' },
    only: { type: 'string', default: 'trivet-postgres,trivet-sqlite,pg-boss,bullmq' },
    count: { type: 'string', default: '10000' },
    pending: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '20' },
  },
});

const PORTS = 16;
const HOOKS_A_PORT = 4;
const BODY = JSON.stringify({ text: 'x'.repeat(2038) });
const SLOW_MS = 2000;

interface Result {
  readonly run: string;
  readonly engine: string;
  readonly [figure: string]: string | number;
}

const results: Result[] = [];
let cluster: PostgresCluster | undefined;

interface Receiver {
  readonly ports: readonly number[];
  waitFor(count: number): Promise<void>;
  report(): Promise<Arrival[]>;
  stop(): void;
}

async function startReceiver(slowMs = 0): Promise<Receiver> {
  const child = fork(join(import.meta.dirname, 'webhooks/receiver.ts'), { stdio: 'inherit' });
  const say = (command: ReceiverCommand) => child.send(command);
  say({ kind: 'listen', ports: PORTS + 1, slowMs });
  const { ports } = (await nextMessage(child, 'listening')) as { ports: number[] };
  const report = async (): Promise<Arrival[]> => {
    say({ kind: 'report' });
    return ((await nextMessage(child, 'arrivals')) as { arrivals: Arrival[] }).arrivals;
  };
  return {
    ports,
    waitFor: async (count) => {
      while ((await report()).length < count) await new Promise((resolve) => setTimeout(resolve, 200));
    },
    report,
    stop: () => child.kill(),
  };
}

function nextMessage(child: ChildProcess, kind: string): Promise<object> {
  return new Promise((resolve) => {
    const listener = (message: { kind: string }) => {
      if (message.kind !== kind) return;
      child.off('message', listener);
      resolve(message);
    };
    child.on('message', listener);
  });
}

interface EngineProcess {
  readonly pid: number;
  ask(command: EngineCommand): Promise<unknown>;
  stop(): Promise<void>;
}

interface Place {
  readonly title: string;
  readonly options: EngineOptions;
  readonly stop: () => void;
}

async function startEngine(place: Place, hooks: readonly BenchHook[]): Promise<EngineProcess> {
  const child = fork(join(import.meta.dirname, 'webhooks/engine.ts'), { stdio: 'inherit' });
  const ask = (command: EngineCommand): Promise<unknown> =>
    new Promise((resolve, reject) => {
      child.once('message', (message: { kind: string; result?: unknown; message?: string }) =>
        message.kind === 'done' ? resolve(message.result) : reject(new Error(message.message)),
      );
      child.send(command);
    });
  await ask({ kind: 'open', options: place.options, hooks });
  return {
    pid: child.pid ?? 0,
    ask,
    stop: async () => {
      await ask({ kind: 'stop' });
      child.disconnect();
    },
  };
}

function createHooks(ports: readonly number[], perPort = HOOKS_A_PORT): BenchHook[] {
  return ports.flatMap((port, index) =>
    Array.from({ length: perPort }, (_, hook) => ({
      id: index * perPort + hook + 1,
      url: `http://127.0.0.1:${port}/hook`,
      ownerId: `owner-${index}`,
    })),
  );
}

async function openPlace(title: string): Promise<Place> {
  const dataDir = mkdtempSync(join(tmpdir(), 'trivet-bench-'));
  const removeDir = () => rmSync(dataDir, { recursive: true, force: true });
  if (title === 'trivet-sqlite') return { title, options: { kind: 'trivet', dataDir }, stop: removeDir };
  if (title === 'bullmq') {
    const redisPort = await findFreePort();
    const settings = [
      '--port',
      String(redisPort),
      '--dir',
      dataDir,
      '--appendonly',
      'yes',
      '--appendfsync',
      'everysec',
    ];
    const redis = spawn('redis-server', settings, { stdio: 'ignore' });
    const stop = () => {
      redis.kill('SIGKILL');
      removeDir();
    };
    return { title, options: { kind: 'bullmq', dataDir, redisPort }, stop };
  }
  cluster ??= await startPostgresCluster({ isDurable: true });
  const databaseUrl = await createTestDatabase(cluster.socketDir, `bench_${Date.now()}`);
  const kind = title === 'pg-boss' ? 'pg-boss' : 'trivet';
  return { title, options: { kind, dataDir, databaseUrl }, stop: removeDir };
}

function findFreePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

function createJobs(hooks: readonly BenchHook[], count: number): BenchJob[] {
  return Array.from({ length: count }, (_, index) => ({ hook: hooks[index % hooks.length]!, body: BODY }));
}

/** Time from the start of the engine until the last of these deliveries is there. */
async function measureDrain(place: Place, healthy: number, slow: number) {
  const receiver = await startReceiver(SLOW_MS);
  const slowPort = receiver.ports.at(-1)!;
  const hooks = createHooks(receiver.ports);
  const engine = await startEngine(place, hooks);
  const healthyHooks = hooks.filter((hook) => !hook.url.includes(`:${slowPort}/`));
  const slowHooks = hooks.filter((hook) => hook.url.includes(`:${slowPort}/`));
  // The slow ones first: whoever has no fairness is stuck behind them.
  const jobs = [...createJobs(slowHooks, slow), ...createJobs(healthyHooks, healthy)];
  await engine.ask({ kind: 'enqueue', jobs });
  const startMs = performance.timeOrigin + performance.now();
  const startCpuMs = readCpuMs(engine.pid);
  await engine.ask({ kind: 'start' });
  const countHealthy = async () => (await receiver.report()).filter((arrival) => arrival.port !== slowPort);
  let arrived = await countHealthy();
  while (arrived.length < healthy) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    arrived = await countHealthy();
  }
  const seconds = (Math.max(...arrived.map((arrival) => arrival.atMs)) - startMs) / 1000;
  const distinct = new Set(arrived.map((arrival) => arrival.uuid)).size;
  const cpuMs = readCpuMs(engine.pid) - startCpuMs;
  const rssMb = readRssMb(engine.pid);
  await engine.stop();
  receiver.stop();
  return {
    seconds,
    cpuMicros: Math.round((cpuMs * 1000) / (healthy + slow)),
    repeated: arrived.length - distinct,
    rssMb,
  };
}

async function runDrain(titles: readonly string[]): Promise<void> {
  const count = Number(flags.count);
  for (const title of titles) {
    const place = await openPlace(title);
    const { seconds, cpuMicros, repeated, rssMb } = await measureDrain(place, count, 0);
    place.stop();
    results.push({
      run: 'drain',
      engine: title,
      seconds: round(seconds),
      perSecond: Math.round(count / seconds),
      cpuMicros,
      repeated,
      rssMb,
    });
  }
}

async function runSlow(titles: readonly string[]): Promise<void> {
  for (const title of titles) {
    const alone = await withPlace(title, (place) => measureDrain(place, 4000, 0));
    const beside = await withPlace(title, (place) => measureDrain(place, 4000, 400));
    results.push({
      run: 'slow',
      engine: title,
      aloneSeconds: round(alone.seconds),
      besideSeconds: round(beside.seconds),
      ratio: round(beside.seconds / alone.seconds),
    });
  }
}

async function withPlace<T>(title: string, work: (place: Place) => Promise<T>): Promise<T> {
  const place = await openPlace(title);
  try {
    return await work(place);
  } finally {
    place.stop();
  }
}

/** p50 and p99 from the commit of a delivery to its arrival. */
async function measureSteady(place: Place, perSecond: number, pending: number) {
  const receiver = await startReceiver();
  const hooks = createHooks(receiver.ports, pending > 0 ? 41 : HOOKS_A_PORT).slice(0, pending > 0 ? 700 : undefined);
  const engine = await startEngine(place, hooks);
  if (pending > 0) await seedBacklog(place.options, pending);
  await engine.ask({ kind: 'start' });
  // The dead endpoints are found out first.
  if (pending > 0) await new Promise((resolve) => setTimeout(resolve, 10_000));
  const seconds = Number(flags.seconds);
  let rssMb = 0;
  const watch = setInterval(() => {
    rssMb = Math.max(rssMb, readRssMb(engine.pid));
  }, 100);
  const committed = (await engine.ask({ kind: 'steady', perSecond, seconds, body: BODY })) as [number, number][];
  await receiver.waitFor(perSecond * seconds);
  clearInterval(watch);
  const arrivals = await receiver.report();
  await engine.stop();
  receiver.stop();
  const uuids = await readUuids(
    place.options,
    committed.map(([id]) => id),
  );
  const arrivedAt = new Map(arrivals.map((arrival) => [arrival.uuid, arrival.atMs]));
  const delays = committed
    .map(([id, atMs]) => (arrivedAt.get(uuids.get(id) ?? '') ?? Number.NaN) - atMs)
    .sort((a, b) => a - b);
  return {
    p50Ms: round(delays[Math.floor(delays.length * 0.5)] ?? Number.NaN),
    p99Ms: round(delays[Math.floor(delays.length * 0.99)] ?? Number.NaN),
    maxMs: round(delays.at(-1) ?? Number.NaN),
    rssMb,
  };
}

/** The engine answers one question at a time, so its memory is read from outside. */
function readCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function readRssMb(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
  return Math.round(Number(kilobytes) / 1024);
}

async function runSteady(titles: readonly string[]): Promise<void> {
  for (const title of titles.filter((one) => one.startsWith('trivet'))) {
    const figures = await withPlace(title, (place) => measureSteady(place, 500, 0));
    results.push({ run: 'steady 500/s', engine: title, ...figures });
  }
}

async function runBacklog(titles: readonly string[]): Promise<void> {
  const pending = Number(flags.pending);
  for (const title of titles.filter((one) => one.startsWith('trivet'))) {
    const figures = await withPlace(title, (place) => measureSteady(place, 200, pending));
    results.push({ run: `backlog ${pending}`, engine: title, ...figures });
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

const RUNS: Record<string, (titles: readonly string[]) => Promise<void>> = {
  drain: runDrain,
  slow: runSlow,
  steady: runSteady,
  backlog: runBacklog,
};

const titles = flags.only.split(',');
for (const run of flags.run.split(',')) await RUNS[run]?.(titles);
await cluster?.stop();

const machine = `${cpus()[0]?.model ?? 'unknown'}, ${cpus().length} cores, Linux ${release()}, Node ${process.version}`;
const date = new Date().toISOString();
if (flags.json) process.stdout.write(`${JSON.stringify({ machine, date, results })}\n`);
else {
  process.stdout.write(`${machine}, ${date}\n`);
  for (const group of Map.groupBy(results, (result) => result.run).values()) {
    const headings = Object.keys(group[0]!);
    process.stdout.write(
      `\n${formatTable(
        headings,
        group.map((result) => headings.map((heading) => result[heading])),
      )}\n`,
    );
  }
}
process.exit(0);
