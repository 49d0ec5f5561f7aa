/**
 * What all processes of a pool have learned and measured survives `kill -9` of all of them: they answer as before, and
 * show the same live accuracy, on pages, in metrics and by command.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Store } from '../../src/database/store.ts';
import { readVersionAccuracy } from '../../src/prediction/live-accuracy/read-accuracy.ts';
import { realWorld } from '../../src/world.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { observePool } from '../support/prediction/observed-pool.ts';
import {
  converge,
  environment,
  predict,
  publishTestModel,
  readMetrics,
  report,
  startPredictors,
} from '../support/prediction/predictor-programs.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import type { Program } from '../support/programs/start-program.ts';
import { createStorePlace, engines, findReasonToSkip, openTestStore } from '../support/store/engines.ts';

const ROUNDS = 6;
const ROWS = 30;
const PROBES = observePool({ rows: 20, servers: [1, 2, 1], seed: 77 });
const SCORES = ['mape', 'bias', 'p90_coverage'].map(
  (score) => `trivet_prediction_${score}_ratio{model="m",pod_type="aggregate",target="ttft"}`,
);

async function readScores(program: Program): Promise<number[]> {
  const read = await readMetrics(program);
  return SCORES.map(read);
}

/** The figures of the service, once they have these many reports. */
async function waitForLive(store: Store, rows: number) {
  return await waitUntil(async () => {
    const [version] = await readVersionAccuracy(store, realWorld.nowMs());
    const live = version?.targets ?? {};
    return (live.ttft?.rows ?? 0) >= rows && live;
  });
}

async function assertAllAnswer(programs: readonly Program[], expected: number[]): Promise<void> {
  for (const program of programs) assert.deepEqual(await predict(program, PROBES), expected);
}

for (const engine of engines)
  test(`all processes are killed, and answer and count as before (${engine})`, {
    skip: findReasonToSkip(engine),
    timeout: 280_000,
  }, async () => {
    await using undo = new AsyncDisposableStack();
    const place = await createStorePlace(engine);
    const env: Record<string, string> = {
      TRIVET_DATA_DIR: place.dataDir,
      ...(place.databaseUrl === undefined ? {} : { DATABASE_URL: place.databaseUrl }),
    };
    await publishTestModel(place);
    const store = undo.use(await openTestStore(place));
    // A folder has one process.
    const count = engine === 'sqlite' ? 1 : 3;
    const before = await startPredictors(undo, count, env);
    const untouched = await predict(before[0]!, PROBES);
    for (let round = 0; round < ROUNDS; round++)
      await report(before[round % count]!, observePool({ rows: ROWS, servers: [1, 2, 1], seed: 100 + round }));
    await converge(before);
    const live = await waitForLive(store, ROUNDS * ROWS);
    const shown = await runTrivet(['model', 'show', 'm', '--json'], { env: { ...environment, ...env } });
    assert.deepEqual((JSON.parse(shown.stdout) as { readonly live: unknown }).live, live);
    const answers = await predict(before[0]!, PROBES);
    assert.notDeepEqual(answers, untouched);
    await assertAllAnswer(before, answers);
    const scores = await readScores(before[0]!);
    assert.ok(scores[0]! > 0);
    for (const program of before) assert.deepEqual(await readScores(program), scores);

    await Promise.all(before.map((program) => program.kill()));
    const after = await startPredictors(undo, count, env);
    await assertAllAnswer(after, answers);
    for (const program of after) assert.deepEqual(await readScores(program), scores);
    assert.deepEqual(await waitForLive(store, ROUNDS * ROWS), live);
    await report(after[0]!, observePool({ rows: ROWS, servers: [1, 2, 1], seed: 300 }));
    await converge(after);
    await assertAllAnswer(after, await predict(after[0]!, PROBES));
    await waitForLive(store, (ROUNDS + 1) * ROWS);
  });
