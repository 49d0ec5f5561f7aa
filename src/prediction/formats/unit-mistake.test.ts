import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import type { ObservationTable } from '../schema/observation-table.ts';
import { findUnitMistake } from './unit-mistake.ts';

function observeIn(unitsPerMs: number): ObservationTable {
  return tabulate(
    observePool({ rows: 50 }).map((row) => ({
      ...row,
      ttftMs: row.ttftMs! * unitsPerMs,
      tpotMs: row.tpotMs! * unitsPerMs,
    })),
  );
}

test('times in milliseconds, and no times at all, are no mistake', () => {
  assert.equal(findUnitMistake(observeIn(1)), undefined);
  assert.equal(findUnitMistake(tabulate([])), undefined);
});

test('times in seconds or microseconds are asked about, with what they would mean', () => {
  const seconds =
    /^Are the times in seconds\? .*a first token typically takes 0\.\d+ ms, each further token 0\.0\d+ ms$/;
  assert.match(findUnitMistake(observeIn(1e-3))!, seconds);
  assert.match(findUnitMistake(observeIn(1e3))!, /^Are the times in microseconds\?/);
});

test('where first tokens alone were observed, they are enough', () => {
  const table = observeIn(1e-3);
  table.tpotMs.fill(Number.NaN);
  assert.match(findUnitMistake(table)!, /a first token typically takes 0\.\d+ ms$/);
});
