/** The capacity of the learned model agrees with the simulator that the model learned from. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLearnedPool } from '../../../test/support/prediction/capacity-check.ts';
import {
  findGpu,
  type LearnedPool,
  learnPool,
  MEAN_OUTPUT_TOKENS,
  measureUse,
} from '../../../test/support/prediction/capacity-pool.ts';
import { createRandom } from '../simulator/random-draws.ts';
import type { Gpu } from '../simulator/step-time.ts';
import { findCapacity, makeRising } from './find-capacity.ts';
import { countUnderWay, fitLoadCurve, type LoadMetrics } from './load-curve.ts';
import { createObservedPool } from './observed-pool.ts';
import type { LatencyLimits } from './search-rates.ts';

const gpu = findGpu;

function learn(gpus: readonly Gpu[], rates: readonly number[]): LearnedPool {
  return learnPool({ kind: 'bursts', gpus, rates });
}

const pools: [title: string, gpus: readonly Gpu[], rates: readonly number[], limits: readonly LatencyLimits[]][] = [
  [
    'one server',
    [gpu('medium')],
    [2, 4, 6, 8, 10, 12, 14, 16],
    [
      { ttftMs: 1000, tpotMs: 40, quantile: 0.9 },
      { ttftMs: 300, tpotMs: undefined, quantile: 0.9 },
    ],
  ],
  [
    'two like servers',
    [gpu('medium'), gpu('medium')],
    [4, 8, 12, 16, 20, 24, 28, 32],
    [
      { ttftMs: 1000, tpotMs: 40, quantile: 0.9 },
      { ttftMs: undefined, tpotMs: 30, quantile: 0.9 },
    ],
  ],
  [
    'three unlike servers',
    [gpu('large'), gpu('medium'), gpu('small')],
    [6, 13, 20, 26, 33, 39, 44, 52],
    [
      { ttftMs: 1000, tpotMs: 40, quantile: 0.9 },
      { ttftMs: 300, tpotMs: undefined, quantile: 0.9 },
    ],
  ],
];
for (const [title, gpus, rates, limitsOfPool] of pools) {
  test(`the capacity of ${title} is within 15 % of the rate at which the simulator breaks a limit`, () => {
    const { model, samples } = learn(gpus, rates);
    const pool = createObservedPool({
      model,
      samples,
      servers: undefined,
      podType: '',
      outputTokens: MEAN_OUTPUT_TOKENS,
    });
    for (const limits of limitsOfPool) {
      const capacity = findCapacity(pool, limits);
      assert.ok(capacity !== undefined);
      const { requestsPerSecond, limitedBy } = capacity;
      const about = `${JSON.stringify(limits)}: ${requestsPerSecond} by ${limitedBy}`;
      assert.notEqual(limitedBy, 'observed load', about);
      assert.ok(measureUse(gpus, requestsPerSecond / 1.15, { limits }) < 1, about);
      assert.ok(measureUse(gpus, requestsPerSecond / 0.85, { limits }) > 1, about);
      const byServer = capacity.servers.reduce((sum, server) => sum + server.requestsPerSecond, 0);
      assert.ok(Math.abs(byServer / requestsPerSecond - 1) < 1e-9);
    }
  });
}

test('longer answers than those of the samples have a lower capacity', () => {
  const { model, samples } = learn([gpu('medium')], [2, 6, 10, 14]);
  const [asObserved, twice] = [1, 2].map((factor) => {
    const outputTokens = factor * MEAN_OUTPUT_TOKENS;
    const pool = createObservedPool({ model, samples, servers: undefined, podType: '', outputTokens });
    return findCapacity(pool, { ttftMs: undefined, tpotMs: 30, quantile: 0.9 })!.requestsPerSecond;
  });
  assert.ok(twice! < 0.8 * asObserved!, `${twice} of ${asObserved}`);
});

test('a recording of overload alone is refused instead of answered with a guess', () => {
  for (const isWhole of [false, true]) {
    const pool = createLearnedPool(
      learnPool({ kind: 'poisson', gpus: [gpu('medium')], rates: [18, 21], seed: 501, isWhole }),
    );
    assert.throws(
      () => findCapacity(pool, { ttftMs: 1000, tpotMs: 40, quantile: 0.9 }),
      /the limits hold at most below the loads that the samples show \(server "medium-0" hardly ever had fewer than \d+ /,
    );
  }
});

test('half of the requests, reported at random, show nearly the same capacity as all', () => {
  const gpus = [gpu('medium'), gpu('medium')];
  const learned = learnPool({ kind: 'poisson', gpus, rates: [6, 12, 18, 24, 30, 36], seed: 501 });
  const random = createRandom(5);
  const half = { ...learned, samples: learned.samples.filter(() => random() < 0.5) };
  const [all, part] = [learned, half].map(
    (of) => findCapacity(createLearnedPool(of), { ttftMs: 800, tpotMs: 45, quantile: 0.9 })!.requestsPerSecond,
  );
  assert.ok(Math.abs(part! / all! - 1) < 0.1, `${part} of ${all}`);
});

test('limits that an idle server breaks have no capacity, and lax ones end at the observed load', () => {
  const { model, samples } = learn([gpu('medium')], [2, 5]);
  const pool = createObservedPool({
    model,
    samples,
    servers: undefined,
    podType: '',
    outputTokens: MEAN_OUTPUT_TOKENS,
  });
  assert.equal(findCapacity(pool, { ttftMs: 1, tpotMs: undefined, quantile: 0.9 }), undefined);
  const lax = findCapacity(pool, { ttftMs: 1e6, tpotMs: 1e6, quantile: 0.9 });
  assert.equal(lax?.limitedBy, 'observed load');
  const seen = lax.curve.filter(({ isExtrapolated }) => !isExtrapolated);
  assert.ok(seen.length < lax.curve.length, 'the curve goes on above the samples');
  assert.equal(seen.at(-1)?.requestsPerSecond, lax.requestsPerSecond);
  for (const read of ['ttftMs', 'tpotMs'] as const) {
    const times: number[] = lax.curve.map((point) => point[read] ?? Number.NaN);
    assert.deepEqual(
      times,
      times.toSorted((one, other) => one - other),
    );
  }
  assert.ok(
    lax.requestsPerSecond > 4 && lax.concurrency <= Math.max(...samples.map(({ input }) => countUnderWay(input))),
  );
  assert.throws(
    () => createObservedPool({ model, samples, servers: ['nowhere'], podType: '', outputTokens: 100 }),
    /no sample is of the server "nowhere"; known are medium-0/,
  );
  assert.throws(
    () => createObservedPool({ model, samples, servers: undefined, podType: 'decode', outputTokens: 100 }),
    /there are 0 samples of the pod type "decode", and at least 50 are needed; other pod types are ""$/,
  );
});

test('samples without TTFT, and samples that never met another request, are refused instead of answered', () => {
  const { model, samples } = learn([gpu('medium')], [2, 5]);
  const without = samples.map((sample) => ({ ...sample, ttftMs: undefined }));
  assert.throws(
    () => createLearnedPool({ model, samples: without }),
    /server "medium-0" needs at least 40 samples with a TTFT, and has 0; name the servers/,
  );
  const few = samples.map((sample, row) => (row < 3 ? sample : { ...sample, tpotMs: undefined }));
  assert.throws(() => createLearnedPool({ model, samples: few }), /needs at least 40 samples with a TPOT, and has 3;/);
  const idle = samples.map((sample) => ({
    ...sample,
    input: { ...sample.input, numRequestWaiting: 0, numRequestRunning: 0 },
  }));
  assert.throws(
    () => findCapacity(createLearnedPool({ model, samples: idle }), { ttftMs: 1000, tpotMs: undefined, quantile: 0.9 }),
    /almost no request at the server "medium-0" found another one there/,
  );
});

test('makeRising() gives neighbours that fall their mean by weight, and leaves others', () => {
  assert.deepEqual(makeRising([1, 5, 2, 3, 9], [1, 1, 3, 1, 1]), [1, 2.75, 2.75, 3, 9]);
  assert.deepEqual(makeRising([3, 2, 1], [1, 1, 1]), [2, 2, 2]);
  assert.deepEqual(makeRising([], []), []);
});

test('a load curve is the mean of the samples, straight between them and in proportion beyond', () => {
  const sample = (numRequestWaiting: number, numRequestRunning: number, kvCacheUsage: number): LoadMetrics => ({
    numRequestWaiting,
    numRequestRunning,
    kvCacheUsage,
    inflightTokens: 0,
    hbmUtilization: 0,
    aiCoreUtilization: 0,
    bandwidthUtilization: 0,
  });
  const repeat = (metrics: LoadMetrics) => Array.from({ length: 20 }, () => metrics);
  const curve = fitLoadCurve([
    ...repeat(sample(2, 18, 0.5)),
    ...repeat(sample(0, 0, 0)),
    ...repeat(sample(0, 10, 0.25)),
  ]);
  assert.deepEqual(curve.at(10), sample(0, 10, 0.25));
  assert.deepEqual(curve.at(15), sample(1, 14, 0.375));
  assert.deepEqual(curve.at(40), sample(4, 36, 1));
  assert.equal(curve.seen, 20);
  assert.deepEqual(fitLoadCurve([]).at(7), sample(0, 7, 0));
});
