/** Compares answers about the capacity of a learned pool with the simulator. */
import assert from 'node:assert/strict';
import { findCapacity } from '../../../src/prediction/capacity/find-capacity.ts';
import { createObservedPool } from '../../../src/prediction/capacity/observed-pool.ts';
import type { LatencyLimits } from '../../../src/prediction/capacity/search-rates.ts';
import type { QueuePool } from '../../../src/prediction/capacity/simulate-queue.ts';
import type { Gpu } from '../../../src/prediction/simulator/step-time.ts';
import { type LearnedPool, MEAN_OUTPUT_TOKENS, measureUse } from './capacity-pool.ts';

export interface Trial {
  readonly pool: QueuePool;
  readonly gpus: readonly Gpu[];
  readonly limits: LatencyLimits;
}

export function createLearnedPool({ model, samples }: LearnedPool): QueuePool {
  return createObservedPool({ model, samples, servers: undefined, podType: '', outputTokens: MEAN_OUTPUT_TOKENS });
}

/** One run of a pool near its limit varies much, so quantiles are over all requests of three runs. */
function breaksLimits({ gpus, limits }: Trial, requestsPerSecond: number): boolean {
  return measureUse(gpus, requestsPerSecond, { limits, seeds: [601, 602, 603] }) > 1;
}

/** Throws unless the answer is within 15 % of the rate at which the simulator exceeds a limit. */
export function checkAnswer(trial: Trial): void {
  const capacity = findCapacity(trial.pool, trial.limits);
  assert.ok(capacity !== undefined, JSON.stringify(trial.limits));
  const { requestsPerSecond, limitedBy } = capacity;
  const about = `${JSON.stringify(trial.limits)}: ${requestsPerSecond} by ${limitedBy}`;
  assert.ok(!breaksLimits(trial, requestsPerSecond / 1.15), `too high, ${about}`);
  // Beyond the observed load, the answer is a lower bound.
  if (limitedBy === 'observed load') return;
  assert.ok(breaksLimits(trial, requestsPerSecond / 0.85), `too low, ${about}`);
}
