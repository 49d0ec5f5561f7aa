import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAdaptiveQuantiles } from './conformal.ts';

/** Blocks of residuals that are all alike, as of requests that were under way together. */
function residualAt(i: number): number {
  return Math.floor(i / 100) % 2;
}

function observeBlocks(since: number) {
  const quantiles = createAdaptiveQuantiles(() => since);
  // The median of the window alone: its level does not move.
  for (let i = 0; i < 1000; i++) quantiles.observe(residualAt(i), [0, 9, 9, 9], since);
  for (let i = 0; i < 200; i++) quantiles.observe(2, [0, 9, 9, 9], since);
  return quantiles.quantiles()![0]!;
}

test('the window is longer where requests end late: two blocks that are alike are not all there is', () => {
  assert.equal(observeBlocks(0), 2);
  assert.equal(observeBlocks(100), 1);
});

test('quantiles wait for more residuals where requests end late', () => {
  const prompt = createAdaptiveQuantiles();
  const late = createAdaptiveQuantiles(() => 200);
  for (let i = 0; i < 30; i++) {
    prompt.observe(i, undefined, 0);
    late.observe(i, undefined, 200);
  }
  assert.notEqual(prompt.quantiles(), undefined);
  assert.equal(late.quantiles(), undefined);
  assert.equal(late.lowerQuantile(), undefined);
});

test('the newest residuals count, also after a restart', () => {
  const before = createAdaptiveQuantiles();
  for (let i = 0; i < 1300; i++) before.observe(i);
  const { residuals } = before.save();
  assert.equal(residuals.length, 1000);
  assert.equal(residuals[0], 300);
  const after = createAdaptiveQuantiles();
  after.restore(before.save());
  assert.equal(after.quantiles()![0], before.quantiles()![0]);
});
