import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findCapacity } from './find-capacity.ts';
import type { LoadMetrics } from './load-curve.ts';
import type { LatencyLimits } from './search-rates.ts';
import { createBudget, sizeRuns } from './search-rates.ts';
import type { QueuePool, QueueServer } from './simulate-queue.ts';

const OUTPUT_TOKENS = 100;

interface LikeServers {
  readonly servers: number;
  readonly promptMs?: number;
  readonly outputTokens?: number;
}

/** Servers whose tokens take 10 ms, and 0.2 ms more for each request under way, with at most 64 in the samples. */
function createPool({ servers, promptMs = 5, outputTokens = OUTPUT_TOKENS }: LikeServers): QueuePool {
  const tpotAt = (underWay: number) => 10 + 0.2 * underWay;
  const server: Omit<QueueServer, 'name'> = {
    load: { seen: 64, lowest: 0, at: () => ({}) as LoadMetrics },
    tpot: {
      at: tpotAt,
      paceAt: (underWay) => 1 / tpotAt(underWay),
      countDelayed: () => 0,
      near: () => ({ end: Number.POSITIVE_INFINITY, promptTokensPerMs: 0, factors: Float64Array.of(1) }),
    },
    promptTimes: { draw: () => promptMs },
    requests: [{ inputTokenLength: 100, prefixCacheScore: 0, outputTokens }],
  };
  return {
    servers: Array.from({ length: servers }, (_, i) => ({ ...server, name: `s${i}` })),
    model: { predictTtft: () => promptMs, shareWithin: (_, medianMs, limitMs) => (medianMs <= limitMs ? 1 : 0) },
    outputTokens,
  };
}

const TPOT: LatencyLimits = { ttftMs: undefined, tpotMs: 18, quantile: 0.9 };

test('the search ends for a pool of 200 servers, at about the load of each at which a limit breaks', () => {
  const found = findCapacity(createPool({ servers: 200 }), TPOT)!;
  assert.equal(found.limitedBy, 'tpot');
  const eachUnderWay = found.concurrency / 200;
  assert.ok(eachUnderWay > 32 && eachUnderWay < 41, `${eachUnderWay} under way at each server`);
});

test('the search of a pool of 200 servers ends at the observed load where no limit breaks', () => {
  const found = findCapacity(createPool({ servers: 200 }), { ...TPOT, tpotMs: 1e6 })!;
  assert.equal(found.limitedBy, 'observed load');
  assert.ok(found.concurrency > 0.85 * 200 * 64 && found.concurrency <= 200 * 64, `${found.concurrency}`);
});

test('the search ends where requests take no time', () => {
  const found = findCapacity(createPool({ servers: 2, promptMs: 0, outputTokens: 1 }), { ...TPOT, ttftMs: 1 })!;
  assert.equal(found.limitedBy, 'observed load');
  assert.ok(Number.isFinite(found.requestsPerSecond));
});

test('a run fills the servers, and long runs are fewer', () => {
  const pool = createPool({ servers: 200 });
  assert.deepEqual(sizeRuns(pool, 3, 200), { runs: 3, requests: 15_000 });
  assert.deepEqual(sizeRuns(pool, 3, 12_800), { runs: 1, requests: 128_000 });
  assert.deepEqual(sizeRuns(createPool({ servers: 1 }), 3, 64), { runs: 3, requests: 3000 });
});

test('a search that would take minutes is refused by the number of servers', () => {
  const budget = createBudget(createPool({ servers: 200 }), 100_000);
  budget.spend({ runs: 3, requests: 30_000 });
  assert.throws(() => budget.spend({ runs: 1, requests: 15_000 }), {
    code: 'invalid',
    message: /200 servers .* name fewer servers$/,
    details: { field: 'servers' },
  });
});
