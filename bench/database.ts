/**
 * Measures what a durable write and a read cost, on SQLite and on a new PostgreSQL with fsync on.
 * `node bench/database.ts [--json] [--seconds 2] [--engine sqlite|postgres]`; with DATABASE_URL, on that PostgreSQL.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { cpus, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrations } from '../src/database/migrations/list.ts';
import { openStore } from '../src/database/startup/open-store.ts';
import type { Store } from '../src/database/store.ts';
import { createLog } from '../src/telemetry/log.ts';
import { realWorld } from '../src/world.ts';
import {
  findNoteSql,
  insertNoteSql,
  insertPair,
  noteMigration,
  takeNoteSql,
} from '../test/support/store/note-store.ts';
import { createTestDatabase, startPostgresCluster } from '../test/support/store/postgres-cluster.ts';
import { readBenchFlags } from './support/bench-flags.ts';
import { NEW_POSTGRES } from './support/new-postgres.ts';

const { values: flags } = readBenchFlags({
  options: {
    json: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '2' },
    engine: { type: 'string' },
  },
});

interface Work {
  readonly title: string;
  /** The number of concurrent callers; each sends its next call when the last is answered. */
  readonly callers: number;
  /** Rows that one call writes or reads. */
  readonly rows: number;
  readonly run: (store: Store, id: string) => Promise<unknown>;
}

const insert = (store: Store, id: string) => store.write(insertNoteSql, [id, 1]);
const insertTen = (store: Store, id: string) =>
  store.writeAll(
    Array.from({ length: 10 }, (_, index) => ({ statement: insertNoteSql, parameters: [`${id}-${index}`, 1] })),
  );

const SEEDED = 10_000;
const seeded = (id: string) => `seed-${(Number(id.split('-').at(-1)) * 7919) % SEEDED}`;

const WORKS: readonly Work[] = [
  { title: 'insert', callers: 1, rows: 1, run: insert },
  { title: 'insert', callers: 16, rows: 1, run: insert },
  { title: 'insert', callers: 256, rows: 1, run: insert },
  { title: 'insert', callers: 2_000, rows: 1, run: insert },
  { title: 'unit of 10 inserts', callers: 64, rows: 10, run: insertTen },
  {
    title: 'claim (conditional update)',
    callers: 64,
    rows: 1,
    run: (store, id) => store.write(takeNoteSql, [seeded(id)]),
  },
  { title: 'procedure of 2 inserts', callers: 64, rows: 2, run: (store, id) => store.call(insertPair, id) },
  { title: 'point read', callers: 1, rows: 1, run: (store, id) => store.read(findNoteSql, [seeded(id)]) },
  { title: 'point read', callers: 16, rows: 1, run: (store, id) => store.read(findNoteSql, [seeded(id)]) },
];

interface Measured {
  readonly engine: string;
  readonly work: string;
  readonly callers: number;
  readonly rowsPerSecond: number;
  readonly medianUs: number;
  readonly p99Us: number;
}

async function measure(store: Store, work: Work, seconds: number): Promise<Measured> {
  const run = realWorld.uuid().slice(0, 8);
  const latencies: number[] = [];
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1000;
  const call = async (caller: number): Promise<void> => {
    for (let count = 0; performance.now() < endsAt; count += 1) {
      const before = performance.now();
      await work.run(store, `${run}-${caller}-${count}`);
      latencies.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: work.callers }, (_, caller) => call(caller)));
  const elapsed = (performance.now() - startedAt) / 1000;
  const sorted = Float64Array.from(latencies).sort();
  return {
    engine: store.engine,
    work: work.title,
    callers: work.callers,
    rowsPerSecond: Math.round((latencies.length * work.rows) / elapsed),
    medianUs: Math.round((sorted[Math.floor(sorted.length / 2)] ?? 0) * 1000),
    p99Us: Math.round((sorted[Math.floor(sorted.length * 0.99)] ?? 0) * 1000),
  };
}

async function measureAll(dataDir: string, databaseUrl: string | undefined): Promise<Measured[]> {
  await using store = await openStore({
    dataDir,
    databaseUrl,
    poolSize: 16,
    migrations: [...migrations, noteMigration],
    log: createLog('warn'),
    world: realWorld,
  });
  for (let from = 0; from < SEEDED; from += 1_000)
    await store.writeAll(
      Array.from({ length: 1_000 }, (_, index) => ({
        statement: insertNoteSql,
        parameters: [`seed-${from + index}`, 1_000_000],
      })),
    );
  const results: Measured[] = [];
  for (const work of WORKS) {
    await measure(store, work, 0.3);
    results.push(await measure(store, work, Number(flags.seconds)));
  }
  return results;
}

async function measurePostgres(dataDir: string): Promise<Measured[]> {
  const given = process.env.DATABASE_URL;
  if (given !== undefined) return await measureAll(dataDir, given);
  const cluster = await startPostgresCluster(NEW_POSTGRES);
  try {
    return await measureAll(dataDir, await createTestDatabase(cluster.socketDir, 'bench'));
  } finally {
    await cluster.stop();
  }
}

/** Measures a small append with fsync on the disk itself: no single durable write can be faster. */
function measureFlushUs(): number {
  const path = join(dataDir, 'flush');
  const file = openSync(path, 'w');
  const page = Buffer.alloc(4096);
  const startedAt = performance.now();
  let count = 0;
  for (; performance.now() - startedAt < 500; count += 1) {
    writeSync(file, page);
    fdatasyncSync(file);
  }
  closeSync(file);
  return Math.round(((performance.now() - startedAt) * 1000) / count);
}

function print(results: readonly Measured[]): void {
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    kernel: release(),
    node: process.version,
  };
  const date = new Date().toISOString();
  const flushUs = measureFlushUs();
  if (flags.json) {
    console.log(JSON.stringify({ date, machine, flushUs, results }, null, 2));
    return;
  }
  console.log(
    `${date}  ${machine.cpu}, ${machine.cores} cores, Linux ${machine.kernel}, Node ${machine.node}, a flush of the disk takes ${flushUs} µs`,
  );
  console.table(results);
}

const dataDir = mkdtempSync(join(tmpdir(), 'trivet-bench-'));
try {
  const results: Measured[] = [];
  if (flags.engine !== 'postgres') results.push(...(await measureAll(dataDir, undefined)));
  if (flags.engine !== 'sqlite') results.push(...(await measurePostgres(dataDir)));
  print(results);
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
