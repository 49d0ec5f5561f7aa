/** The method against a pool whose smallest server gets a tenth of the requests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkAnswer, createLearnedPool } from '../../../test/support/prediction/capacity-check.ts';
import { findGpu, learnPool, measureUse, RECORDINGS } from '../../../test/support/prediction/capacity-pool.ts';
import { findCapacity } from './find-capacity.ts';
import type { LatencyLimits } from './search-rates.ts';
import type { QueuePool } from './simulate-queue.ts';

const SATURATION = 52;
const gpus = ['large', 'medium', 'small'].map(findGpu);

// Neither these seeds nor the first two limits were used while the method was made.
const PLATEAU: LatencyLimits = { ttftMs: undefined, tpotMs: 40, quantile: 0.9 };
const LIMITS: readonly LatencyLimits[] = [
  { ttftMs: 600, tpotMs: 28, quantile: 0.9 },
  { ttftMs: 350, tpotMs: undefined, quantile: 0.9 },
  // The 90th percentile of this pool is 40 to 45 ms at every rate from 36 to 50 requests a second.
  PLATEAU,
];
/** Servers that are never idle do not show what low loads cost. Then the answer is a refusal. */
const isRefused = (kind: string, { tpotMs }: LatencyLimits) =>
  kind === 'one' || (kind === 'busy' && tpotMs !== undefined);

const pools = new Map<string, QueuePool>();

/** Each recording is learned once. */
function findPool(kind: string): QueuePool {
  const { rates, ...recorded } = RECORDINGS[kind]!;
  const pool =
    pools.get(kind) ??
    createLearnedPool(learnPool({ ...recorded, gpus, rates: rates.map((rate) => rate * SATURATION), seed: 501 }));
  pools.set(kind, pool);
  return pool;
}

for (const kind of Object.keys(RECORDINGS))
  test(`the capacity of three unlike servers is within 15 % of the simulator's, learned from the recording: ${kind}`, () => {
    const pool = findPool(kind);
    for (const limits of LIMITS)
      if (isRefused(kind, limits)) assert.throws(() => findCapacity(pool, limits), /observe the servers at lower/);
      else checkAnswer({ pool, gpus, limits });
  });

test('where a quantile stays about at its limit over many rates, the answer has the range in which it breaks', () => {
  const { plateau, requestsPerSecond, limitedBy } = findCapacity(findPool('steady'), PLATEAU)!;
  assert.ok(plateau !== undefined && limitedBy === 'tpot');
  const { fromRequestsPerSecond: from, toRequestsPerSecond: to } = plateau;
  assert.ok(from < requestsPerSecond && requestsPerSecond < to && to > 1.15 * from, JSON.stringify(plateau));
  const measure = (rate: number) => measureUse(gpus, rate, { limits: PLATEAU, seeds: [601, 602, 603] });
  assert.ok(measure(from) < 1, 'below the range the limit holds');
  assert.ok(measure(to) > 1, 'above the range it is broken');
});
