import assert from 'node:assert/strict';
import { test } from 'node:test';
import { calibrate } from '../../model/calibration.ts';
import { createRandom, drawLogNormal } from '../../simulator/random-draws.ts';
import { QUANTILE_LEVELS } from './conformal.ts';
import { type PredictedInterval, quantileMs } from './interval-statistics.ts';
import { correctLearned, createLearnedCorrections, type LearnedCorrections } from './learned-corrections.ts';
import { createPredictionIntervals } from './prediction-intervals.ts';

const P90 = QUANTILE_LEVELS.indexOf(0.9);
const LEARNED = [0, 1, 1.5, 2];
const RECENT = [0, 3, 4, 5];

function roomTo(recent: readonly number[]): Float64Array {
  return Float64Array.from(recent, (quantile, p) => quantile - LEARNED[p]!);
}

function apply({ corrections }: LearnedCorrections, level: number, recent: number): number {
  return correctLearned(LEARNED[level]!, recent, corrections[level]!);
}

/** Corrections after events of which all have this residual. */
function correctBy(residual: number, { isAtFloor = false, recent = RECENT, events = 5000 } = {}) {
  const corrections = createLearnedCorrections();
  for (let i = 0; i < events; i++) {
    const quantiles = LEARNED.map((_, p) => apply(corrections, p, recent[p]!));
    const floor = isAtFloor ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
    corrections.observe(residual, { quantiles, floor, learnedRoom: roomTo(recent) }, 0);
  }
  return corrections;
}

test('misses pull a learned quantile to the recent one, and never beyond it', () => {
  const missed = correctBy(9);
  for (const p of [1, 2, 3]) {
    const learned = LEARNED[p]!;
    assert.equal(apply(missed, p, RECENT[p]!), RECENT[p]);
    assert.equal(apply(missed, p, learned + 0.5), learned + 0.5);
    assert.equal(apply(missed, p, learned - 1), learned);
    assert.ok(missed.save()[p]! < RECENT[p]! - learned + 0.05, 'misses without an effect are not added up');
  }
  assert.equal(missed.save()[0], 0);
});

test('covered requests lower a learned quantile to the recent one, and not at all while it is at a floor', () => {
  const narrow = [0, 0.5, 0.6, 0.7];
  assert.equal(apply(correctBy(-9, { recent: narrow }), P90, narrow[P90]!), narrow[P90]);
  assert.deepEqual(correctBy(-9, { recent: narrow, isAtFloor: true }).save(), [0, 0, 0, 0]);
});

/** The correction of the p90 after one miss. */
function correctByOne(eventsMeanwhile: number, learnedRoom: Float64Array | undefined): number {
  const corrections = createLearnedCorrections();
  corrections.observe(9, { quantiles: LEARNED, floor: 0, learnedRoom }, eventsMeanwhile);
  return corrections.save()[P90]!;
}

test('one event moves a correction little, and less the more requests end meanwhile', () => {
  const moved = correctByOne(0, roomTo(RECENT));
  assert.ok(moved > 0 && moved < 0.05, `${moved}`);
  assert.ok(correctByOne(1000, roomTo(RECENT)) < moved / 5);
});

test('a correction stays while no learned quantile is blended with a recent one', () => {
  assert.equal(correctByOne(0, undefined), 0);
});

const UNDER_WAY = 240;

/** Requests that end 240 others later; those of the middle phase scatter four times as widely as the model learned. */
function widenForAWhile() {
  const random = createRandom(5);
  const drawRatio = (width: number) => drawLogNormal(random, 1, 0.3) ** width;
  const learned = Float64Array.from({ length: 600 }, () => 100 * drawRatio(1));
  const intervals = createPredictionIntervals('ttft', calibrate(new Float64Array(600).fill(100), learned));
  const pending: { interval: PredictedInterval; server: number; ratio: number }[] = [];
  const p90Ms = () => quantileMs('p90', 100, intervals.predictInterval(100, 0));
  /** The share of these requests that stays below the p90. */
  const serve = (requests: number, width: number): number => {
    let below = 0;
    for (let i = 0; i < requests; i++) {
      const ratio = drawRatio(width);
      const interval = intervals.predictInterval(100, i % 8);
      if (100 * ratio <= quantileMs('p90', 100, interval)) below++;
      pending.push({ interval, server: i % 8, ratio });
      if (pending.length <= UNDER_WAY) continue;
      const ended = pending.shift()!;
      intervals.observe(ended.interval, ended.server, Math.log(ended.ratio));
    }
    return below / requests;
  };
  serve(4000, 1);
  const before = p90Ms();
  serve(3000, 4);
  const wide = serve(3000, 4);
  serve(1500, 1);
  return { before, wide, after: p90Ms() };
}

test('a slot that scatters four times as widely is covered, and soon has its p90 again when it scatters as before', () => {
  const { before, wide, after } = widenForAWhile();
  assert.ok(wide > 0.84 && wide < 0.93, `${wide} stayed below the p90 while times scattered widely`);
  assert.ok(Math.abs(after / before - 1) < 0.08, `${after} ms after, ${before} before`);
});
