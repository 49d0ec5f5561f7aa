/** The method against pools, limits and seeds that it was not made with. */
import { test } from 'node:test';
import { checkAnswer, createLearnedPool } from '../../../test/support/prediction/capacity-check.ts';
import { findGpu, learnPool, RECORDINGS } from '../../../test/support/prediction/capacity-pool.ts';
import type { Gpu } from '../simulator/step-time.ts';
import type { LatencyLimits } from './search-rates.ts';

const gpu = findGpu;

// These seeds were not used while the method was made.
const LIMITS: readonly LatencyLimits[] = [
  { ttftMs: 800, tpotMs: 45, quantile: 0.9 },
  { ttftMs: 400, tpotMs: undefined, quantile: 0.9 },
];
const unseen: [title: string, gpus: readonly Gpu[], saturation: number][] = [
  ['one medium server', [gpu('medium')], 16],
  ['two large servers', ['large', 'large'].map(gpu), 72],
  ['unlike servers', ['large', 'medium'].map(gpu), 50],
];
for (const [title, gpus, saturation] of unseen)
  for (const [kind, { rates, ...recorded }] of Object.entries(RECORDINGS))
    test(`the capacity of ${title} is within 15 % of the simulator's, learned from the recording: ${kind}`, () => {
      const pool = createLearnedPool(
        learnPool({ ...recorded, gpus, rates: rates.map((rate) => rate * saturation), seed: 501 }),
      );
      for (const limits of LIMITS) checkAnswer({ pool, gpus, limits });
    });

test("the capacity is within 15 % of the simulator's without the lengths of answers", () => {
  const gpus = ['large', 'medium'].map(gpu);
  const rates = RECORDINGS.bursts!.rates.map((rate) => rate * 50);
  const { model, samples } = learnPool({ kind: 'bursts', gpus, rates, seed: 501 });
  const withoutLengths = samples.map((sample) => ({ ...sample, outputTokens: undefined }));
  checkAnswer({ pool: createLearnedPool({ model, samples: withoutLengths }), gpus, limits: LIMITS[0]! });
});
