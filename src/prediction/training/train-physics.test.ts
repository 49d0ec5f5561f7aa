import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { statisticOffset } from '../model/calibration.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import type { Observation } from '../schema/observation.ts';
import { createRandom, drawLogNormal, type Random } from '../simulator/random-draws.ts';
import { predictPhysics, trainPhysics } from './train-physics.ts';

const TRIALS = 120;

function drawRows(random: Random, count: number): Observation[] {
  return Array.from({ length: count }, () => {
    const running = Math.floor(20 * random());
    const load = { numRequestRunning: running, kvCacheUsage: running / 40, inflightTokens: 800 * running };
    const input = {
      podType: '',
      serverIp: 's',
      ...fillMetrics(() => 0),
      inputTokenLength: 500 + 1000 * random(),
      ...load,
    };
    const tpotMs = drawLogNormal(random, 20 + 0.6 * running, 0.3);
    return { targetModel: 'm', input, atMs: undefined, ttftMs: undefined, tpotMs };
  });
}

test('trainPhysics() learns a p90 from 20 rows that holds for further rows', () => {
  const random = createRandom(21);
  let covered = 0;
  for (let trial = 0; trial < TRIALS; trial++) {
    const { physics, calibration } = trainPhysics('tpot', tabulate(drawRows(random, 20)));
    const further = tabulate(drawRows(random, 60));
    for (const [row, ms] of predictPhysics(physics, further).entries()) {
      const offset = statisticOffset(calibration, { target: 'tpot', statistic: 'p90' }, ms);
      if (further.tpotMs[row]! <= ms * Math.exp(offset)) covered += 1 / (60 * TRIALS);
    }
  }
  assert.ok(covered >= 0.9 && covered < 0.93, `${covered}`);
});
