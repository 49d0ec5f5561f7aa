import assert from 'node:assert/strict';
import { test } from 'node:test';
import { binRows, fitBinning } from '../gbdt/binning.ts';
import { FEATURE_COUNT, HISTORY_FEATURES, MISSING_HISTORY } from '../model/features.ts';
import { addBlankedRows } from './blanked-rows.ts';

const ROWS = 1000;

/** Every feature of a row is its number; with or without history. */
function listColumns(history: (row: number) => number): Float32Array[] {
  return Array.from({ length: FEATURE_COUNT }, (_, feature) =>
    Float32Array.from({ length: ROWS }, (_, row) => (HISTORY_FEATURES.includes(feature) ? history(row) : row)),
  );
}

function learn(columns: readonly Float32Array[]) {
  const rows = binRows(fitBinning(columns), columns);
  return {
    rows,
    target: Float64Array.from({ length: ROWS }, (_, row) => row),
    weights: new Float64Array(ROWS).fill(2),
  };
}

test('a quarter of the rows are used a second time without their history', () => {
  const { rows, target, weights } = addBlankedRows(learn(listColumns((row) => row)));
  assert.equal(rows.rowCount, target.length);
  assert.ok(Math.abs(rows.rowCount - 1.25 * ROWS) < 10);
  for (let i = ROWS; i < rows.rowCount; i++) {
    const row = target[i]!;
    assert.equal(weights![i], 2);
    for (let feature = 0; feature < FEATURE_COUNT; feature++) {
      const expected = HISTORY_FEATURES.includes(feature) ? 0 : rows.bins[feature * rows.rowCount + row];
      assert.equal(rows.bins[feature * rows.rowCount + i], expected);
    }
  }
});

test('rows without any history are learned once', () => {
  assert.equal(addBlankedRows(learn(listColumns(() => MISSING_HISTORY))).rows.rowCount, ROWS);
});
