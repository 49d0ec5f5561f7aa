import assert from 'node:assert/strict';
import { test } from 'node:test';
import { calibrate, unknownCalibration } from '../../model/calibration.ts';
import { quantileMs } from './interval-statistics.ts';
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

test('the median follows what servers show by 5 % where it is known at once, and hardly where it is known late', () => {
  assert.ok(Math.abs(predictMedian(1) - 105) < 0.2);
  assert.ok(predictMedian(300) > 100 && predictMedian(300) < 100.2);
});

test('short times that stall do not make the p90 of a long one many times as long', () => {
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

test('learned quantiles count beside recent ones, and less the more of these there are', () => {
  const ratios = Float64Array.from({ length: 200 }, (_, i) => 100 * Math.exp((i - 100) / 100));
  const learned = calibrate(new Float64Array(200).fill(100), ratios);
  const predictP90 = (events: number) => {
    const intervals = createPredictionIntervals('ttft', learned);
    for (let i = 0; i < events; i++)
      intervals.observe(intervals.predictInterval(100, -1), -1, i === 0 ? 0.8 : (i % 10) / 100);
    return quantileMs('p90', 100, intervals.predictInterval(100, -1));
  };
  const [first, some, many] = [predictP90(0), predictP90(20), predictP90(300)];
  assert.ok(first > 215 && first < 230, `learned ${first}`);
  assert.ok(some > 120 && some < 0.8 * first, `as many recent ones ${some}`);
  assert.ok(many < 111 && many > 108, `many recent ones ${many}`);
});
