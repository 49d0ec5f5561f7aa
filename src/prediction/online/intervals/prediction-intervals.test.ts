import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unknownCalibration } from '../../model/calibration.ts';
import { quantileMs } from './interval-statistics.ts';
import { createPredictionIntervals } from './prediction-intervals.ts';

/** The median of a server whose times are all twice the mixture, where so many requests are under way at once. */
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
