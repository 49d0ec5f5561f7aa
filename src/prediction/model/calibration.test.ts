import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRandom, drawLogNormal, type Random } from '../simulator/random-draws.ts';
import { calibrate, LEVELS, type Statistic, statisticOffset } from './calibration.ts';

const SCATTER = 0.4;
const TRIALS = 2000;

/** Log-normal times around predictions of 1 ms. */
const drawTimes = (random: Random, count: number) =>
  Float64Array.from({ length: count }, () => drawLogNormal(random, 1, SCATTER));

/** The share of further times that stay below a quantile of this many. */
function measureCoverage(rows: number, statistic: Statistic): number {
  const random = createRandom(rows);
  let covered = 0;
  for (let trial = 0; trial < TRIALS; trial++) {
    const calibration = calibrate(new Float64Array(rows).fill(1), drawTimes(random, rows));
    const offset = statisticOffset(calibration, { target: 'tpot', statistic }, 1);
    if (drawLogNormal(random, 1, SCATTER) <= Math.exp(offset)) covered++;
  }
  return covered / TRIALS;
}

for (const rows of [1, 2, 5, 8, 20, 60])
  test(`calibrate() has quantiles of ${rows} times that hold for further times`, () => {
    for (const [statistic, share] of [
      ['p90', 0.9],
      ['p95', 0.95],
      ['p99', 0.99],
    ] as const) {
      const coverage = measureCoverage(rows, statistic);
      assert.ok(coverage > share - 0.02, `${statistic}: ${coverage}`);
    }
  });

test('calibrate() has quantiles that rise with their level, however few times there are', () => {
  for (const rows of [1, 2, 3, 10, 40, 300]) {
    const { quantiles } = calibrate(new Float64Array(rows).fill(1), drawTimes(createRandom(7), rows));
    for (let i = 1; i < quantiles.length; i++)
      if (i % LEVELS.length > 0) assert.ok(quantiles[i]! >= quantiles[i - 1]!, `${rows} times: ${quantiles.join()}`);
  }
});
