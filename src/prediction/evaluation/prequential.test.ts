import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { createPriorModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import type { Observation } from '../schema/observation.ts';
import { createObservationTable, selectRows } from '../schema/observation-table.ts';
import type { Answers } from './accuracy.ts';
import { splitInTime } from './folds.ts';
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

const PARTS: [outputTokens: number | undefined, knownMs: number][] = [
  [2000, 1000 + 100 + 2000 * 10],
  [3, 1000 + 100 + 3 * 10],
  [undefined, 1000 + 100 + 200 * 10],
];
for (const [outputTokens, knownMs] of PARTS)
  test(`the TPOT of an answer of ${outputTokens ?? 'unknown'} tokens is known at its end`, () => {
    const [row] = observations as [Observation];
    const table = tabulate([{ ...row, atMs: 1000, ttftMs: 100, tpotMs: 10, outputTokens }]);
    assert.equal(createKnownAt(table)(0, 'tpot'), knownMs);
  });

test('splitInTime() splits a run of more rows than a call may have arguments', () => {
  const table = createObservationTable(200_000);
  table.count = 200_000;
  table.runs.push('');
  const { train, test: tested } = splitInTime(table);
  assert.deepEqual([train.length, tested.length, train.at(-1), tested[0]], [140_000, 60_000, 139_999, 140_000]);
});

test('selectRows() keeps the names of more servers than a call may have arguments', () => {
  const table = createObservationTable(1);
  for (let i = 0; i < 200_000; i++) table.servers.push(`${i}`);
  assert.equal(selectRows(table, []).servers.length, 200_000);
});

test('refits come after 30, 60 and every 100 rows, and in a long recording with every fiftieth part more', () => {
  assert.deepEqual(listRefits(301), [0, 30, 60, 100, 200, 300]);
  assert.deepEqual(listRefits(5400).slice(-4), [5000, 5100, 5202, 5306]);
  assert.ok(listRefits(1_000_000).length < 400);
});
