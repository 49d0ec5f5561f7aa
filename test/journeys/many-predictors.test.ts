/**
 * Three processes of the service on one PostgreSQL answer as one: whichever receives the reports, also after `kill -9` of
 * one, and after the database was away.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { observePool } from '../support/prediction/observed-pool.ts';
import {
  converge,
  predict,
  publishTestModel,
  readMetrics,
  report,
  startPredictors,
} from '../support/prediction/predictor-programs.ts';
import { createDataDir, type Program } from '../support/programs/start-program.ts';
import { findReasonToSkip } from '../support/store/engines.ts';
import { createTestDatabase, startPostgresCluster } from '../support/store/postgres-cluster.ts';

const SLOWED = [1, 2, 1];
const options = { skip: findReasonToSkip('postgres'), timeout: 280_000 };
const PROBES = observePool({ rows: 20, servers: SLOWED, seed: 77 });

async function assertAlike(programs: readonly Program[]): Promise<void> {
  const [first, ...others] = await Promise.all(programs.map((program) => predict(program, PROBES)));
  for (const other of others) assert.deepEqual(other, first);
}

const ROWS_A_ROUND = 24;

/** Asks the first program, and reports to the others in turn. The errors of what it answered, in percent. */
async function serve(programs: readonly Program[], rounds: number, delaysMs: number[]): Promise<number[]> {
  const [asked, ...receivers] = programs;
  const errors: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const rows = observePool({ rows: ROWS_A_ROUND, servers: SLOWED, seed: 100 + round });
    const answers = await predict(asked!, rows);
    errors.push(...rows.map(({ ttftMs }, i) => 100 * Math.abs(answers[i]! / ttftMs! - 1)));
    await report(receivers.length === 0 ? asked! : receivers[round % receivers.length]!, rows);
    delaysMs.push(await converge(programs));
  }
  return errors;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function describeDelays(t: TestContext, delaysMs: readonly number[]): void {
  const sorted = delaysMs.toSorted((a, b) => a - b).map(Math.round);
  t.diagnostic(`alike after ${sorted[sorted.length >> 1]} ms (median), ${sorted.at(-1)} ms (longest)`);
}

test('three processes on one PostgreSQL answer as one', options, async (t) => {
  await using undo = new AsyncDisposableStack();
  const cluster = await startPostgresCluster();
  undo.defer(() => cluster.stop());
  const [databaseUrl, aloneUrl] = [
    await createTestDatabase(cluster.socketDir, 'many'),
    await createTestDatabase(cluster.socketDir, 'alone'),
  ];
  const dataDir = createDataDir();
  await publishTestModel({ dataDir, databaseUrl });
  await publishTestModel({ dataDir, databaseUrl: aloneUrl });

  const [alone] = await startPredictors(undo, 1, { DATABASE_URL: aloneUrl });
  const ofOne = await serve([alone!], 12, []);
  await alone!.stop();
  const programs = await startPredictors(undo, 3, { DATABASE_URL: databaseUrl });
  const delaysMs: number[] = [];
  const ofThree = await serve(programs, 12, delaysMs);
  await assertAlike(programs);
  describeDelays(t, delaysMs);
  const later = (errors: readonly number[]) => mean(errors.slice(ROWS_A_ROUND));
  t.diagnostic(`error after the first round: three ${later(ofThree).toFixed(2)} %, one ${later(ofOne).toFixed(2)} %`);
  assert.ok(later(ofThree) <= 1.1 * later(ofOne), `${later(ofThree)} % instead of ${later(ofOne)} %`);
  const read = await readMetrics(programs[0]!);
  t.diagnostic(`${read('trivet_prediction_shared_rows_total{writer="other"}')} rows of others`);

  // A process dies. What it has shared stays, and another one that starts knows it.
  await programs[2]!.kill();
  const [started] = await startPredictors(undo, 1, { DATABASE_URL: databaseUrl });
  const alive = [programs[0]!, programs[1]!, started!];
  await converge(alive);
  await assertAlike(alive);
  await report(started!, observePool({ rows: 12, servers: [2, 1, 1], seed: 300 }));
  await converge(alive);
  await assertAlike(alive);

  // The database goes away: Predict goes on, and all agree once it is back.
  await report(alive[0]!, observePool({ rows: 30, servers: [2, 1, 1], seed: 301 }));
  await report(alive[1]!, observePool({ rows: 30, servers: [1, 1, 2], seed: 302 }));
  await cluster.kill();
  for (let i = 0; i < 20; i++) for (const program of alive) assert.equal((await predict(program, PROBES)).length, 20);
  await cluster.start();
  t.diagnostic(`alike ${Math.round(await converge(alive))} ms after the database was back`);
  await assertAlike(alive);
  await report(alive[2]!, observePool({ rows: 12, servers: SLOWED, seed: 303 }));
  await converge(alive);
  await assertAlike(alive);
});
