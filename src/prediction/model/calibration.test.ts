import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRandom, drawLogNormal, type Random } from '../simulator/random-draws.ts';
import { calibrate, LEVELS, type Statistic, statisticOffset } from './calibration.ts';

const SCATTER = 0.4;
const LITTLE_SCATTER = 0.05;
const TRIALS = 2000;

/** Log-normal times around predictions of 1 ms. */
const drawTimes = (random: Random, count: number, scatter = SCATTER) =>
  Float64Array.from({ length: count }, () => drawLogNormal(random, 1, scatter));

/** The share of further times that stay below a quantile of this many. */
function measureCoverage(rows: number, statistic: Statistic, scatter: number): number {
  const random = createRandom(rows);
  let covered = 0;
  for (let trial = 0; trial < TRIALS; trial++) {
    const calibration = calibrate(new Float64Array(rows).fill(1), drawTimes(random, rows, scatter));
    const offset = statisticOffset(calibration, { target: 'tpot', statistic }, 1);
    if (drawLogNormal(random, 1, scatter) <= Math.exp(offset)) covered++;
  }
  return covered / TRIALS;
}

for (const rows of [1, 2, 5, 8, 20, 60])
  test(`calibrate() has quantiles of ${rows} times that hold for further times`, () => {
    for (const [statistic, share] of [
      ['p90', 0.9],
      ['p95', 0.95],
      ['p99', 0.99],
    ] as const)
      for (const scatter of [LITTLE_SCATTER, SCATTER]) {
        const coverage = measureCoverage(rows, statistic, scatter);
        assert.ok(coverage > share - 0.02, `${statistic} of ${scatter}: ${coverage}`);
      }
  });

test('calibrate() has a narrow p99 of 20 times that scatter little', () => {
  const random = createRandom(20);
  let sum = 0;
  for (let trial = 0; trial < TRIALS; trial++) {
    const calibration = calibrate(new Float64Array(20).fill(1), drawTimes(random, 20, LITTLE_SCATTER));
    sum += Math.exp(statisticOffset(calibration, { target: 'tpot', statistic: 'p99' }, 1));
  }
  assert.ok(sum / TRIALS < 1.42, `${sum / TRIALS} times the median`);
});

test('calibrate() has quantiles that rise with their level, however few times there are', () => {
  for (const rows of [1, 2, 3, 10, 40, 300]) {
    const { quantiles } = calibrate(new Float64Array(rows).fill(1), drawTimes(createRandom(7), rows));
    for (let i = 1; i < quantiles.length; i++)
      if (i % LEVELS.length > 0) assert.ok(quantiles[i]! >= quantiles[i - 1]!, `${rows} times: ${quantiles.join()}`);
  }
});
