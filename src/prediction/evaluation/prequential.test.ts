import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { createPriorModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import type { Observation } from '../schema/observation.ts';
import type { Answers } from './accuracy.ts';
import { createLiveAnswerer, listRefits, selectKnownBy } from './prequential.ts';
import { createKnownAt } from './report-times.ts';

/** Requests that start together: none of their times is known when the next one starts. */
function startTogether(rows: readonly Observation[]): Observation[] {
  return rows.map((row) => ({ ...row, atMs: 1_700_000_000_000, endMs: 1_700_000_900_000 }));
}

function predictAll(rows: readonly Observation[]): number[] {
  const answers: Answers = { ttft: [], tpot: [] };
  const answer = createLiveAnswerer(createLiveModel(createPriorModel()), tabulate(rows), { answers });
  answer(rows.map((_, i) => i));
  return answers.ttft.map(({ predictedMs }) => predictedMs);
}

const observations = observePool({ rows: 60 });

test('times that are not known yet change no answer', () => {
  const rows = startTogether(observations);
  const slower = rows.map((row) => ({ ...row, ttftMs: row.ttftMs! * 20, tpotMs: row.tpotMs! * 20 }));
  assert.deepEqual(predictAll(slower), predictAll(rows));
});

test('times that are known by then do change the answers', () => {
  const faster = observations.map((row) => ({ ...row, atMs: undefined, ttftMs: row.ttftMs! / 2 }));
  const asTheyAre = observations.map((row) => ({ ...row, atMs: undefined }));
  assert.equal(predictAll(faster)[0], predictAll(asTheyAre)[0]);
  assert.ok(predictAll(faster)[59]! < 0.75 * predictAll(asTheyAre)[59]!);
});

test('a refit learns only from times that were known', () => {
  const rows = startTogether(observations);
  const table = tabulate(rows);
  const all = rows.map((_, i) => i);
  const knownAt = createKnownAt(table);
  const timesKnownAt = (nowMs: number) =>
    selectKnownBy(table, all, { knownAt, nowMsOfRun: () => nowMs }).ttftMs.subarray(0, 60);
  assert.ok(timesKnownAt(rows[59]!.atMs!).every(Number.isNaN));
  assert.ok(timesKnownAt(1_800_000_000_000).every((value) => value > 0));
});

test('refits come after 30, 60 and every 100 rows, and in a long recording with every fiftieth part more', () => {
  assert.deepEqual(listRefits(301), [0, 30, 60, 100, 200, 300]);
  assert.deepEqual(listRefits(5400).slice(-4), [5000, 5100, 5202, 5306]);
  assert.ok(listRefits(1_000_000).length < 400);
});
