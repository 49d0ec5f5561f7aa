/**
 * Measures many prediction processes on one PostgreSQL: what sharing costs the database, how long they take to agree, and what
 * `kill -9` of one loses. `node bench/processes.ts [--processes 10] [--seconds 20] [--rate 4]`, with the rate in reports a
 * second to each process.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { observePool } from '../test/support/prediction/observed-pool.ts';
import { converge, publishTestModel, report, startPredictors } from '../test/support/prediction/predictor-programs.ts';
import { createDataDir, type Program } from '../test/support/programs/start-program.ts';
import { createTestDatabase, startPostgresCluster } from '../test/support/store/postgres-cluster.ts';
import { readBenchFlags } from './support/bench-flags.ts';
import { NEW_POSTGRES } from './support/new-postgres.ts';

const { values: flags } = readBenchFlags({
  options: {
    processes: { type: 'string', default: '10' },
    seconds: { type: 'string', default: '20' },
    rate: { type: 'string', default: '4' },
  },
});
const PROCESSES = Number(flags.processes);
const SECONDS = Number(flags.seconds);
const RATE = Number(flags.rate);
const SERVERS = [1, 2, 1, 1, 3, 1, 1, 1];

await using undo = new AsyncDisposableStack();
const cluster = await startPostgresCluster(NEW_POSTGRES);
undo.defer(() => cluster.stop());
const databaseUrl = await createTestDatabase(cluster.socketDir, 'many');
await publishTestModel({ dataDir: createDataDir(), databaseUrl });
const client = new pg.Client({ connectionString: databaseUrl });
await client.connect();
undo.defer(() => client.end());
const programs = await startPredictors(undo, PROCESSES, { DATABASE_URL: databaseUrl });

interface Usage {
  readonly atMs: number;
  readonly databaseMs: number;
  readonly commits: number;
  readonly walBytes: number;
  readonly rows: number;
}

async function readNumber(text: string): Promise<number> {
  const { rows } = await client.query<{ value: string | null }>(text);
  return Number(rows[0]?.value ?? 0);
}

const TICK_MS = 10;

/** Processor time of the server with all its processes. */
function readDatabaseMs(): number {
  const [server = ''] = readFileSync(join(cluster.socketDir, 'data', 'postmaster.pid'), 'utf8').split('\n');
  const ticks = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      const fields = readFields(pid);
      if (pid === server) return sumFields(fields, 11, 15);
      return fields[1] === server ? sumFields(fields, 11, 13) : 0;
    });
  return ticks.reduce((sum, value) => sum + value, 0) * TICK_MS;
}

/** Returns the fields of /proc/PID/stat after the name, from the state on. */
function readFields(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
  } catch {
    return [];
  }
}

function sumFields(fields: readonly string[], from: number, to: number): number {
  return fields.slice(from, to).reduce((sum, text) => sum + Number(text), 0);
}

async function readUsage(): Promise<Usage> {
  return {
    atMs: performance.now(),
    databaseMs: readDatabaseMs(),
    commits: await readNumber('SELECT SUM(xact_commit) AS value FROM pg_stat_database'),
    walBytes: await readNumber(`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS value`),
    rows: await readNumber('SELECT sequence AS value FROM shared_clock'),
  };
}

function describeUsage(what: string, before: Usage, after: Usage): void {
  const seconds = (after.atMs - before.atMs) / 1000;
  const perSecond = (read: (usage: Usage) => number): number => (read(after) - read(before)) / seconds;
  const cores = perSecond(({ databaseMs }) => databaseMs) / 1000;
  console.log(
    `${what}: ${perSecond(({ rows }) => rows).toFixed(1)} shared rows/s, ${perSecond(({ commits }) => commits).toFixed(0)} transactions/s, ` +
      `${(perSecond(({ walBytes }) => walBytes) / 1024).toFixed(0)} KiB of WAL/s, ${(100 * cores).toFixed(1)} % of a core of PostgreSQL`,
  );
}

async function measure(what: string, work: () => Promise<unknown>): Promise<void> {
  const before = await readUsage();
  await work();
  describeUsage(what, before, await readUsage());
}

let seed = 1;

async function reportSome(program: Program, rows: number): Promise<void> {
  await report(program, observePool({ rows, servers: SERVERS, seed: seed++ }));
}

async function reportSteadily(): Promise<void> {
  for (let second = 0; second < SECONDS; second++)
    await Promise.all([sleep(1000), ...programs.map((program) => reportSome(program, RATE))]);
}

const LIVE = `SELECT SUM(times) AS value FROM accuracy_sums WHERE kind = 'pod type' AND target = 'ttft'`;
const SAMPLES = 'SELECT COUNT(*) AS value FROM samples';
const KILLED_ROWS = 40;

/** Reports to the last process, and kills it as soon as it answers. */
async function killOne(): Promise<string> {
  const before = { live: await readNumber(LIVE), samples: await readNumber(SAMPLES) };
  const sequence = await readNumber('SELECT sequence AS value FROM shared_clock');
  const victim = programs.pop()!;
  await reportSome(victim, KILLED_ROWS);
  await victim.kill();
  await sleep(3000);
  const shared = (await readNumber('SELECT sequence AS value FROM shared_clock')) - sequence;
  const [live, samples] = [(await readNumber(LIVE)) - before.live, (await readNumber(SAMPLES)) - before.samples];
  return `stored ${samples} of ${KILLED_ROWS}, shared ${shared > 0 ? 'before' : 'not'}, in the live figures ${live}`;
}

console.log(`${PROCESSES} processes, ${RATE} reports a second to each, ${SERVERS.length} servers`);
await converge(programs);
await sleep(12_000);
await measure('at rest', () => sleep(10_000));
await measure('under reports', reportSteadily);
const size = await readNumber('SELECT AVG(OCTET_LENGTH(content)) AS value FROM shared_log');
console.log(`a shared row has ${Math.round(size)} bytes on average`);
const delaysMs: number[] = [];
for (let i = 0; i < 5; i++) {
  await converge(programs);
  await reportSome(programs[i % PROCESSES]!, 8);
  delaysMs.push(Math.round(await converge(programs)));
}
console.log(`agreed after ${delaysMs.sort((a, b) => a - b).join(', ')} ms`);
await sleep(5000);
for (let i = 0; i < 3; i++) console.log(`kill -9: ${await killOne()}`);
for (const table of ['accuracy_sums', 'accuracy_counts', 'shared_log'])
  console.log(
    `${table}: ${await readNumber(`SELECT COUNT(*) AS value FROM ${table}`)} rows, ${await readNumber(`SELECT pg_total_relation_size('${table}') / 1024 AS value`)} KiB`,
  );
