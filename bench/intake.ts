/**
 * Measures how many events of one repository are accepted over HTTP: the real program with real tokens, on
 * SQLite and PostgreSQL (started here, with fsync), while deliveries to a receiver are under way.
 *
 * `node bench/intake.ts [--json] [--only sqlite,postgres] [--processes 1,2] [--hooks 1,4] [--callers 1,4,16,32,64]
 * [--events 1000] [--before FOLDER] [--turns 2]`. With `--before`, the program of another checkout takes turns with this one.
 */
import { mkdtempSync, readFileSync } from 'node:fs';
import { cpus, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import { formatTable } from '../src/command-line/output.ts';
import type { StorePlace } from '../test/support/store/engines.ts';
import {
  createTestDatabase,
  type PostgresCluster,
  startPostgresCluster,
} from '../test/support/store/postgres-cluster.ts';
import {
  numberedPush,
  type PublishingService,
  startPublishingService,
} from '../test/support/webhooks/publishing-service.ts';
import { readBenchFlags } from './support/bench-flags.ts';
import { NEW_POSTGRES } from './support/new-postgres.ts';
import { takePercentile } from './webhooks/arrivals.ts';
import { SETTLE_MS } from './webhooks/front-door.ts';
import { readCpuMs, startReceiver } from './webhooks/processes.ts';

const { values: flags } = readBenchFlags({
  options: {
    json: { type: 'boolean', default: false },
    only: { type: 'string', default: 'sqlite,postgres' },
    processes: { type: 'string', default: '1,2' },
    hooks: { type: 'string', default: '1,4' },
    callers: { type: 'string', default: '1,4,16,32,64' },
    events: { type: 'string', default: '1000' },
    before: { type: 'string' },
    turns: { type: 'string', default: '1' },
  },
});
const readList = (text: string) => text.split(',').map(Number);
const events = Number(flags.events);
/** A warm-up, since code that has never run is slow. */
const WARM_UP_EVENTS = 300;

interface Figures {
  readonly callers: number;
  readonly acceptedPerSecond: number;
  readonly refused: number;
  /** Deliveries of accepted events that never arrived. */
  readonly missing: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time for one accepted event with all its deliveries and their results: other load disturbs it less. */
  readonly serviceMicros: number;
  readonly databaseMicros: number;
}

interface Result extends Figures {
  readonly engine: string;
  readonly processes: number;
  readonly hooks: number;
}

/** A turn of one program, with this many events and callers. */
interface Turn {
  readonly tookMs: readonly number[];
  readonly accepted: number;
  readonly missing: number;
  readonly seconds: number;
  readonly serviceMs: number;
  readonly databaseMs: number;
}

interface Load {
  /** Each sends its next event when the last one is answered. */
  readonly callers: number;
  readonly count: number;
  /** Resolves when the deliveries of these events have arrived and their results are stored. Returns how many never arrived. */
  readonly settle: (accepted: number) => Promise<number>;
}

async function takeTurn(service: PublishingService, { callers, count, settle }: Load): Promise<Turn> {
  const pools = service.programs.map(({ httpUrl }) => new Pool(httpUrl, { connections: callers }));
  const path = new URL(service.eventsUrl(0)).pathname;
  const headers = { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' };
  const tookMs: number[] = [];
  let next = 0;
  let refused = 0;
  const runCaller = async (index: number): Promise<void> => {
    const pool = pools[index % pools.length]!;
    while (next < count) {
      next += 1;
      const body = JSON.stringify(numberedPush(next));
      const startMs = performance.now();
      const response = await pool.request({ method: 'POST', path, headers, body });
      await response.body.dump();
      tookMs.push(performance.now() - startMs);
      if (response.statusCode !== 202) refused += 1;
    }
  };
  const readServiceMs = startStopwatch(service.programs.map(({ pid }) => pid));
  const readDatabaseMs = startStopwatch(databasePids);
  const startMs = performance.now();
  await Promise.all(Array.from({ length: callers }, (_, index) => runCaller(index)));
  const seconds = (performance.now() - startMs) / 1000;
  await Promise.all(pools.map((pool) => pool.close()));
  const accepted = count - refused;
  const missing = await settle(accepted);
  return { tookMs, accepted, missing, seconds, serviceMs: readServiceMs(), databaseMs: readDatabaseMs() };
}

/** Milliseconds of processor time since now, of all these processes. */
function startStopwatch(pids: readonly number[]): () => number {
  const read = () => pids.reduce((sum, pid) => sum + readCpuMs(pid), 0);
  const startMs = read();
  return () => read() - startMs;
}

function summarize(turns: readonly Turn[], callers: number): Figures {
  const sum = (read: (turn: Turn) => number) => turns.reduce((total, turn) => total + read(turn), 0);
  const tookMs = turns.flatMap((turn) => turn.tookMs);
  const accepted = sum((turn) => turn.accepted);
  return {
    callers,
    acceptedPerSecond: Math.round(accepted / sum(({ seconds }) => seconds)),
    refused: tookMs.length - accepted,
    missing: sum((turn) => turn.missing),
    p50Ms: takePercentile(tookMs, 0.5),
    p99Ms: takePercentile(tookMs, 0.99),
    serviceMicros: Math.round((sum(({ serviceMs }) => serviceMs) * 1000) / accepted),
    databaseMicros: Math.round((sum(({ databaseMs }) => databaseMs) * 1000) / accepted),
  };
}

interface Place extends AsyncDisposable {
  readonly name: string;
  /** Ends with an empty queue, so that the next turn, perhaps of the other program, has the machine to itself. */
  takeTurn(callers: number, count: number): Promise<Turn>;
}

async function openPlace(engine: string, folder: string | undefined, size: Size): Promise<Place> {
  await using undo = new AsyncDisposableStack();
  const receiver = await startReceiver();
  undo.defer(() => receiver.stop());
  const urls = receiver.ports.slice(0, size.hooks).map((port) => `http://127.0.0.1:${port}/`);
  const place = await createPlace(engine);
  const service = undo.use(await startPublishingService({ place, processes: size.processes, urls, folder }));
  let arrived = 0;
  const settle = async (accepted: number): Promise<number> => {
    const expected = arrived + accepted * size.hooks;
    arrived = await receiver.waitFor(expected);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    return expected - arrived;
  };
  const owned = undo.move();
  return {
    name: folder === undefined ? engine : `${engine}, before`,
    takeTurn: (callers, count) => takeTurn(service, { callers, count, settle }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface Size {
  readonly processes: number;
  readonly hooks: number;
}

async function measurePlaces(engine: string, size: Size): Promise<Result[]> {
  await using opened = new AsyncDisposableStack();
  const places: Place[] = [];
  for (const folder of flags.before === undefined ? [undefined] : [flags.before, undefined])
    places.push(opened.use(await openPlace(engine, folder, size)));
  for (const place of places) await place.takeTurn(8, WARM_UP_EVENTS);
  const results: Result[] = [];
  for (const callers of readList(flags.callers)) {
    const turns = new Map<Place, Turn[]>(places.map((place) => [place, []]));
    for (let count = 0; count < Number(flags.turns); count += 1)
      // The order is reversed each turn: the first of a turn is the last of the next.
      for (const place of count % 2 === 0 ? places : places.toReversed())
        turns.get(place)?.push(await place.takeTurn(callers, events));
    for (const [{ name }, some] of turns) results.push({ engine: name, ...size, ...summarize(some, callers) });
  }
  return results;
}

let cluster: PostgresCluster | undefined;
/** Empty for SQLite, which runs in the service. */
let databasePids: readonly number[] = [];

async function createPlace(engine: string): Promise<StorePlace> {
  const dataDir = mkdtempSync(join(tmpdir(), 'trivet-bench-'));
  databasePids = [];
  if (engine === 'sqlite') return { dataDir, databaseUrl: undefined };
  cluster ??= await startPostgresCluster(NEW_POSTGRES);
  const [pid = ''] = readFileSync(join(cluster.socketDir, 'data/postmaster.pid'), 'utf8').split('\n');
  databasePids = [Number(pid)];
  return { dataDir, databaseUrl: await createTestDatabase(cluster.socketDir, `bench_${Date.now()}`) };
}

const results: Result[] = [];
for (const engine of flags.only.split(','))
  for (const processes of readList(flags.processes)) {
    // Only one process can use a data folder.
    if (engine === 'sqlite' && processes > 1) continue;
    for (const hooks of readList(flags.hooks)) {
      process.stderr.write(`${engine}, ${processes} processes, ${hooks} hooks\n`);
      results.push(...(await measurePlaces(engine, { processes, hooks })));
    }
  }
await cluster?.stop();
const machine = `${cpus()[0]?.model ?? 'unknown'}, ${cpus().length} cores, Linux ${release()}, Node ${process.version}`;
const date = new Date().toISOString();
if (flags.json) process.stdout.write(`${JSON.stringify({ machine, date, results })}\n`);
else {
  const headings = Object.keys(results[0] ?? {}) as (keyof Result)[];
  const rows = results.map((result) => headings.map((heading) => result[heading]));
  process.stdout.write(`${machine}, ${date}\n\n${formatTable(headings, rows)}\n`);
}
process.exit(0);
