import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRandom, drawLogNormal } from '../../simulator/random-draws.ts';
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

test('the window is longer where requests end late, so that it has more than two blocks of equal residuals', () => {
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
  assert.ok(prompt >= 0.75 && prompt < 0.76, `prompt ${prompt}`);
  assert.ok(late >= 0.885 && late < 0.895, `late ${late}`);
  assert.equal(moveLevel(MISSED, { events: 3000, underWay: 0 }), 0.995);
  const lateMissed = moveLevel(MISSED, { events: 3000, underWay: 90 });
  assert.ok(lateMissed > 0.905 && lateMissed <= 0.915, `late, missed ${lateMissed}`);
});

test('a level that others moved out of its range counts as the end of the range, and moves back', () => {
  const quantiles = createAdaptiveQuantiles(() => 90);
  for (let i = 0; i < 1000; i++) quantiles.observe(i % 100, { quantiles: COVERED }, 90);
  const saved = quantiles.save();
  quantiles.restore({ ...saved, levels: [0.5, 0.5, 0.95, 0.99], corrections: [0, 0, 0, 0] });
  assert.equal(quantiles.quantiles()![P90], 88);
  quantiles.observe(0, { quantiles: COVERED }, 90);
  assert.equal(quantiles.save().levels[P90], 0.5);
  quantiles.observe(0, { quantiles: MISSED }, 90);
  assert.ok(quantiles.save().levels[P90]! > 0.5);
});

/** The share of residuals below the p90 while all of them rise slowly, and each is known after a hundred others. */
function coverRising(events: number): number {
  const underWay = 100;
  const random = createRandom(4);
  const slot = createAdaptiveQuantiles(() => underWay);
  const pending: { residual: number; quantiles: number[]; before: number }[] = [];
  let below = 0;
  for (let i = 0; i < events; i++) {
    const residual = 0.001 * i + Math.log(drawLogNormal(random, 1, 1));
    const quantiles = [...(slot.quantiles() ?? [0, 1.3, 1.6, 2.3])];
    pending.push({ residual, quantiles, before: slot.count });
    if (i >= events / 2 && residual <= quantiles[P90]!) below++;
    if (i < underWay) continue;
    const late = pending.shift()!;
    slot.observe(late.residual, late, slot.count - late.before);
  }
  return below / (events / 2);
}

test('a quantile that was too low for long is corrected, although its level may hardly move', () => {
  const covered = coverRising(12_000);
  assert.ok(Math.abs(covered - 0.9) < 0.015, `${covered} stayed below the p90`);
});

test('corrections of quantiles are kept over a restart, and 0 in a state that an older release saved', () => {
  const before = createAdaptiveQuantiles();
  for (let i = 0; i < 400; i++) before.observe(i % 10, { quantiles: MISSED });
  const { corrections, ...saved } = before.save();
  assert.ok(corrections![P90]! > 0.5);
  const after = createAdaptiveQuantiles();
  after.restore({ ...saved, corrections: corrections! });
  assert.deepEqual(after.quantiles(), before.quantiles());
  after.restore(saved);
  assert.ok(Math.abs(before.quantiles()![P90]! - after.quantiles()![P90]! - corrections![P90]!) < 1e-9);
});

test('a correction leaves its upper bound by the covered events, and its lower one by the misses', () => {
  const correctAfter = (predicted: readonly number[], { from, events }: { from: number; events: number }) => {
    const quantiles = createAdaptiveQuantiles();
    for (let i = 0; i < 30; i++) quantiles.observe(0, { quantiles: COVERED });
    quantiles.restore({ ...quantiles.save(), corrections: [0, from, from, from] });
    for (let i = 0; i < events; i++) quantiles.observe(0, { quantiles: predicted });
    return quantiles
      .save()
      .corrections!.slice(1)
      .map((correction) => Number(correction.toFixed(2)));
  };
  assert.deepEqual(correctAfter(MISSED, { from: 0, events: 1000 }), [3, 3, 3]);
  assert.deepEqual(correctAfter(COVERED, { from: 0, events: 40_000 }), [-3, -3, -3]);
  assert.deepEqual(correctAfter(COVERED, { from: 3, events: 3000 }), [0, 1.5, 2.7]);
  assert.deepEqual(correctAfter(MISSED, { from: -3, events: 300 }), [-0.3, -0.15, -0.03]);
});
