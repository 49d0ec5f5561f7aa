import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAdaptiveQuantiles, QUANTILE_LEVELS } from './conformal.ts';

/** Blocks of residuals that are all alike, as of requests that were under way together. */
function residualAt(i: number): number {
  return Math.floor(i / 100) % 2;
}

function observeBlocks(delay: number) {
  const quantiles = createAdaptiveQuantiles(() => delay);
  // The median of the window alone: its level does not move.
  for (let i = 0; i < 1000; i++) quantiles.observe(residualAt(i), { quantiles: [0, 9, 9, 9] }, delay);
  for (let i = 0; i < 200; i++) quantiles.observe(2, { quantiles: [0, 9, 9, 9] }, delay);
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

const P90 = QUANTILE_LEVELS.indexOf(0.9);
const COVERED = [9, 9, 9, 9];
const MISSED = [-9, -9, -9, -9];

/** The level of the p90 after this many events that were all covered, or all missed. */
function moveLevel(predicted: readonly number[], { events, underWay }: { events: number; underWay: number }): number {
  const quantiles = createAdaptiveQuantiles(() => underWay);
  for (let i = 0; i < events; i++) quantiles.observe(0, { quantiles: predicted }, Math.min(i, underWay));
  return quantiles.save().levels[P90]!;
}

test('levels stay while learned quantiles are predicted', () => {
  assert.equal(moveLevel(COVERED, { events: 200, underWay: 100 }), 0.9);
  assert.ok(moveLevel(COVERED, { events: 400, underWay: 100 }) < 0.9);
});

test('the more requests are under way together, the less a level may move', () => {
  const prompt = moveLevel(COVERED, { events: 3000, underWay: 0 });
  const late = moveLevel(COVERED, { events: 3000, underWay: 90 });
  assert.ok(prompt >= 0.7 && prompt < 0.71, `prompt ${prompt}`);
  assert.ok(late >= 0.88 && late < 0.89, `late ${late}`);
  assert.equal(moveLevel(MISSED, { events: 3000, underWay: 0 }), 0.995);
  const lateMissed = moveLevel(MISSED, { events: 3000, underWay: 90 });
  assert.ok(lateMissed > 0.91 && lateMissed <= 0.92, `late, missed ${lateMissed}`);
});

test('a level that others moved out of its range counts as its end, and moves back', () => {
  const quantiles = createAdaptiveQuantiles(() => 90);
  for (let i = 0; i < 1000; i++) quantiles.observe(i % 100, { quantiles: COVERED }, 90);
  const saved = quantiles.save();
  quantiles.restore({ ...saved, levels: [0.5, 0.5, 0.95, 0.99] });
  assert.equal(quantiles.quantiles()![P90], 88);
  quantiles.observe(0, { quantiles: COVERED }, 90);
  assert.equal(quantiles.save().levels[P90], 0.5);
  quantiles.observe(0, { quantiles: MISSED }, 90);
  assert.ok(quantiles.save().levels[P90]! > 0.5);
});
