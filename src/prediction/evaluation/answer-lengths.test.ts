import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillMetrics } from '../schema/input-fields.ts';
import { appendObservation, createObservationTable } from '../schema/observation-table.ts';
import { measureByLength } from './answer-lengths.ts';

function createTable(lengths: readonly (number | undefined)[]) {
  const table = createObservationTable();
  const input = { podType: '', serverIp: 's', ...fillMetrics(() => 0) };
  for (const outputTokens of lengths)
    appendObservation(table, { targetModel: '', input, atMs: undefined, ttftMs: 1, tpotMs: 10, outputTokens });
  return table;
}

test('errors of TPOT are counted by the length of the answer', () => {
  const table = createTable([2, 3, 4, 15, 16, 900, undefined]);
  const answers = Array.from({ length: 7 }, (_, row) => ({ row, observedMs: 10, predictedMs: 10 + row, p90Ms: 20 }));
  const measured = measureByLength(table, answers).map(({ tokens, accuracy }) => [
    tokens,
    accuracy.rows,
    accuracy.mape,
  ]);
  assert.deepEqual(measured, [
    ['2-3', 2, 5],
    ['4-15', 2, 25],
    ['16+', 2, 45],
  ]);
});

test('without any length there is nothing to tell apart', () => {
  const answers = [{ row: 0, observedMs: 10, predictedMs: 11, p90Ms: 20 }];
  assert.deepEqual(measureByLength(createTable([undefined]), answers), []);
});
