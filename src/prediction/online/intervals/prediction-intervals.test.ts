import assert from 'node:assert/strict';
import { test } from 'node:test';
import { calibrate, unknownCalibration } from '../../model/calibration.ts';
import { createRandom, drawLogNormal } from '../../simulator/random-draws.ts';
import { type PredictedInterval, quantileMs } from './interval-statistics.ts';
import { createPredictionIntervals } from './prediction-intervals.ts';

/** The median of a server whose times are all twice the mixture, where this many requests are under way at once. */
function predictMedian(underWay: number): number {
  const intervals = createPredictionIntervals('tpot', unknownCalibration());
  const predicted = Array.from({ length: underWay }, () => intervals.predictInterval(100, 0));
  for (let i = 0; i < 500; i++) {
    intervals.observe(predicted.shift()!, 0, Math.log(2));
    predicted.push(intervals.predictInterval(100, 0));
  }
  return quantileMs('p50', 100, intervals.predictInterval(100, 0));
}

test('the median follows observed times by up to 5 % if they are known at once, and hardly if they are known late', () => {
  assert.ok(Math.abs(predictMedian(1) - 105) < 0.2);
  assert.ok(predictMedian(300) > 100 && predictMedian(300) < 100.2);
});

test('short times that stall do not multiply the p90 of a long one', () => {
  const predicted = Float64Array.from({ length: 200 }, (_, i) => 90 + (i % 20));
  const steady = calibrate(
    predicted,
    predicted.map((ms) => ms * 1.01),
  );
  const intervals = createPredictionIntervals('ttft', steady);
  for (let i = 0; i < 300; i++) intervals.observe(intervals.predictInterval(100, 0), 0, i % 5 === 0 ? Math.log(30) : 0);
  const p90Ms = (mixtureMs: number) => quantileMs('p90', mixtureMs, intervals.predictInterval(mixtureMs, 0));
  assert.ok(p90Ms(100) > 2900, `of a short time: ${p90Ms(100)}`);
  assert.ok(p90Ms(30_000) > 30_000 && p90Ms(30_000) <= 30_000 + 2 * 2900 + 1, `of a long time: ${p90Ms(30_000)}`);
});

test('learned quantiles are blended with recent ones, and count less the more recent residuals there are', () => {
  const ratios = Float64Array.from({ length: 200 }, (_, i) => 100 * Math.exp((i - 100) / 100));
  const learned = calibrate(new Float64Array(200).fill(100), ratios);
  const predictP90 = (events: number) => {
    const intervals = createPredictionIntervals('ttft', learned);
    for (let i = 0; i < events; i++)
      intervals.observe(intervals.predictInterval(100, -1), -1, i === 0 ? 0.8 : (i % 10) / 100);
    return quantileMs('p90', 100, intervals.predictInterval(100, -1));
  };
  const [first, some, many] = [predictP90(0), predictP90(60), predictP90(300)];
  // The p90 of the recent ones is between 108 and 110. It is not too low while the learned part gets small.
  for (const events of [240, 260, 280])
    assert.ok(predictP90(events) > 108, `${events} recent ones: ${predictP90(events)}`);
  assert.ok(first > 215 && first < 230, `learned ${first}`);
  assert.ok(some > 120 && some < 0.8 * first, `as many recent ones ${some}`);
  assert.ok(many < 111 && many > 108, `many recent ones ${many}`);
});

test('a prediction that was made before the counts began again reverses no correction', () => {
  const predictAfter = (observedBefore: number) => {
    const intervals = createPredictionIntervals('ttft', unknownCalibration());
    const old = { ...intervals.predictInterval(100, 0), observedBefore, observedOfServerBefore: observedBefore };
    intervals.observe(old, 0, 0);
    for (let i = 0; i < 600; i++) intervals.observe(intervals.predictInterval(100, 0), 0, i % 4 === 0 ? 0.5 : 0.01);
    return quantileMs('p90', 100, intervals.predictInterval(100, 0));
  };
  assert.ok(Math.abs(predictAfter(40_000) / predictAfter(0) - 1) < 0.02, `${predictAfter(40_000)}, ${predictAfter(0)}`);
});

/** The duration of a request in ms: twice as long in the surges. */
function drawMs(random: () => number, isSurge: boolean): number {
  return 100 * drawLogNormal(random, isSurge ? 2 : 1, 0.3);
}

/**
 * The share of requests below the p90 where five of twenty seconds bring ten times as many requests as the others. All times are
 * known two seconds late. The learned quantiles are of such requests too.
 */
function coverSurges(seconds: number): number {
  const random = createRandom(3);
  const learned = Float64Array.from({ length: 400 }, (_, i) => drawMs(random, i % 13 >= 3));
  const intervals = createPredictionIntervals('ttft', calibrate(new Float64Array(400).fill(100), learned));
  const pending: { knownAt: number; server: number; ms: number; interval: PredictedInterval }[] = [];
  const observeUntil = (now: number) => {
    while (pending.length > 0 && pending[0]!.knownAt <= now) {
      const { interval, server, ms } = pending.shift()!;
      intervals.observe(interval, server, Math.log(ms / 100));
    }
  };
  let [below, requests] = [0, 0];
  for (let second = 0; second < seconds; second++) {
    const isSurge = second % 20 >= 15;
    const count = isSurge ? 100 : 10;
    for (let i = 0; i < count; i++) {
      const now = second + i / count;
      observeUntil(now);
      const server = Math.floor(4 * random());
      const interval = intervals.predictInterval(100, server);
      const ms = drawMs(random, isSurge);
      requests++;
      if (ms <= quantileMs('p90', 100, interval)) below++;
      pending.push({ knownAt: now + 2, server, ms, interval });
    }
  }
  return below / requests;
}

test('a miss in a surge counts as much as one in a calm period, also when times are known late', () => {
  const covered = coverSurges(600);
  assert.ok(covered > 0.875 && covered < 0.925, `${covered} stayed below the p90`);
});

test('requests that only the bound of a stalled queue covers do not lower the p90 of those without it', () => {
  const intervals = createPredictionIntervals('ttft', unknownCalibration());
  const observe = (events: number, leastMs?: number) => {
    for (let i = 0; i < events; i++)
      intervals.observe(intervals.predictInterval(100, -1, { leastMs }), -1, (i % 20) / 20);
    return quantileMs('p90', 100, intervals.predictInterval(100, -1));
  };
  const before = observe(2000);
  const after = observe(3000, 10_000);
  assert.ok(after > 0.95 * before && after < 1.05 * before, `${after} after ${before}`);
});
