import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Calibration, LEVELS, unknownCalibration } from '../model/calibration.ts';
import { createPriorModel, createTargetPrior } from '../model/model.ts';
import { createRandom, drawLogNormal } from '../simulator/random-draws.ts';
import { findConcurrency } from './find-concurrency.ts';
import { fitLoadCurve, LOAD_FIELDS, type LoadMetrics } from './load-curve.ts';
import { type LatencyLimits, quantileOf } from './search-rates.ts';
import { createServiceModel, type ServiceModel } from './service-model.ts';
import type { TpotCurve } from './tpot-curve.ts';

const SEEN = 40;
const REQUESTS = [100, 800, 3000].map((inputTokenLength) => {
  return { inputTokenLength, prefixCacheScore: 0, outputTokens: 100 };
});

/** The medians are those of the prior. */
function openService(calibration: Calibration): ServiceModel {
  const ttft = { ...createTargetPrior('ttft'), rows: calibration.rows, calibration };
  const steps = createServiceModel({ ...createPriorModel(), pooled: { ttft } }, '', []);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

function meet(waiting: number): LoadMetrics {
  const idle = Object.fromEntries(LOAD_FIELDS.map((name) => [name, 0])) as unknown as LoadMetrics;
  return { ...idle, numRequestWaiting: waiting };
}

const UNSCATTERED = { end: Number.POSITIVE_INFINITY, promptTokensPerMs: 0, factors: Float64Array.of(1) };

function openServer(tpot: Pick<TpotCurve, 'at' | 'near'>, seen = SEEN) {
  const curve: TpotCurve = { ...tpot, paceAt: () => 1, countDelayed: () => 0 };
  return { name: 's', load: { seen, lowest: 0, at: meet }, tpot: curve, requests: REQUESTS };
}

const time = fc.integer({ min: 100, max: 400 });
const sorted = (values: readonly number[]) => Float64Array.from(values).sort();
const residuals = fc.array(fc.double({ min: -1, max: 2, noNaN: true }), {
  minLength: LEVELS.length,
  maxLength: LEVELS.length,
});
const calibration = fc.uniqueArray(time, { maxLength: 7 }).chain((edges) =>
  fc.array(residuals, { minLength: edges.length + 1, maxLength: edges.length + 1 }).map((buckets): Calibration => {
    const quantiles = buckets.flatMap((bucket) => [...sorted(bucket)]);
    const logMeans = new Float64Array(buckets.length);
    return { edges: sorted(edges), quantiles: Float64Array.from(quantiles), logMeans, rows: 500 };
  }),
);
const quantile = fc.double({ min: 0.5, max: 0.99, noNaN: true });

test('shareWithin() never rises where the median does, nor falls where the limit rises', () => {
  const rising = fc.tuple(time, time).map(([one, other]) => [Math.min(one, other), Math.max(one, other)] as const);
  fc.assert(
    fc.property(calibration, rising, rising, (known, [low, high], [strict, lenient]) => {
      const share = (medianMs: number, limitMs: number) => openService(known).shareWithin('s', medianMs, limitMs);
      assert.ok(share(low, strict) >= share(high, strict) - 1e-9);
      assert.ok(share(low, strict) <= share(low, lenient) + 1e-9);
    }),
  );
});

test('findConcurrency() finds the same number however far it searches, as the limits hold at all lower loads', () => {
  const factors = fc.array(fc.double({ min: 0.5, max: 2, noNaN: true }), { minLength: 2, maxLength: 9 }).map(sorted);
  // Each range of ten requests under way has factors of its own.
  const ranges = fc.array(factors, { minLength: 1, maxLength: 8 });
  const limits = fc.record({ ttftMs: time, tpotMs: fc.double({ min: 5, max: 60, noNaN: true }), quantile });
  fc.assert(
    fc.property(calibration, ranges, limits, (known, all, asked) => {
      const service = openService(known);
      const near = (underWay: number) => {
        const range = Math.min(all.length - 1, Math.floor(underWay / 10));
        const end = range === all.length - 1 ? Number.POSITIVE_INFINITY : 10 * range + 9;
        return { end, promptTokensPerMs: 0, factors: all[range]! };
      };
      const find = (seen: number) =>
        findConcurrency(service, openServer({ at: (underWay) => 10 + underWay / 4, near }, seen), asked);
      const most = find(SEEN);
      for (let seen = 1; seen < SEEN; seen += 3) assert.equal(find(seen), Math.min(most, 2 * seen));
    }),
  );
});

test('findConcurrency() keeps the limit of TTFT at all lower loads, though bursts that start from idle met more that waited', () => {
  const met = (waiting: number, running: number) => ({ ...meet(waiting), numRequestRunning: running });
  const bursts = Array.from({ length: 180 }, (_, i) => met(1 + (i % 9), 0));
  const load = fitLoadCurve([...bursts, ...Array.from({ length: 200 }, () => met(0, 12))]);
  const service = openService(unknownCalibration());
  const near = () => UNSCATTERED;
  const server = { ...openServer({ at: () => 1, near }), load };
  for (const ttftMs of [600, 800, 1000, 1400]) {
    const shares = Array.from({ length: 25 }, (_, underWay) => {
      const medians = REQUESTS.map((request) => service.predictTtft('s', { ...request, ...load.at(underWay) }));
      return medians.reduce((sum, ms) => sum + service.shareWithin('s', ms, ttftMs), 0) / medians.length;
    });
    const firstBroken = shares.findIndex((share) => share < 0.9);
    const found = findConcurrency(service, server, { ttftMs, tpotMs: undefined, quantile: 0.9 });
    assert.equal(found, firstBroken === -1 ? 24 : Math.max(0, firstBroken - 1), `${ttftMs} ms: ${shares.join()}`);
  }
});

for (const seen of [40, 1e6, 2 ** 32])
  test(`findConcurrency() tries few loads when the highest of the samples is ${seen}`, () => {
    let tried = 0;
    const at = (waiting: number) => {
      tried++;
      return meet(waiting);
    };
    const near = (underWay: number) =>
      underWay < 20 ? { ...UNSCATTERED, end: 19, factors: Float64Array.of(1.5) } : UNSCATTERED;
    const find = (limits: Partial<LatencyLimits>) => {
      const server = openServer({ at: (underWay) => 10 + underWay / 4, near }, seen);
      const asked = { ttftMs: undefined, tpotMs: undefined, quantile: 0.9, ...limits };
      return findConcurrency(openService(unknownCalibration()), { ...server, load: { ...server.load, at } }, asked);
    };
    assert.deepEqual([find({}), find({ tpotMs: 20 }), find({ tpotMs: 25 })], [2 * seen, 13, 60]);
    assert.ok(find({ ttftMs: 1000 }) < 2 * seen);
    assert.ok(tried < 500, `${tried} loads`);
  });

const SCATTER = 0.5;
/** The quantiles of a standard normal distribution at `LEVELS`. */
const NORMAL = [-1.6449, -1.2816, -0.6745, 0, 0.6745, 1.2816, 1.6449, 2.3263];
const DRAWS = 60_000;

for (const level of [0.5, 0.9, 0.95, 0.99])
  test(`findConcurrency() finds the load at which the ${level} quantile over all prompts reaches its limit`, () => {
    const quantiles = Float64Array.from(NORMAL, (normal) => SCATTER * normal);
    const service = openService({ edges: new Float64Array(0), quantiles, logMeans: Float64Array.of(0), rows: 500 });
    const random = createRandom(1);
    const medians = REQUESTS.map((request) => service.predictTtft('s', { ...request, ...meet(50) }));
    const times = Float64Array.from({ length: DRAWS }, (_, i) =>
      drawLogNormal(random, medians[i % medians.length]!, SCATTER),
    );
    const limits = { ttftMs: quantileOf(times.sort(), level), tpotMs: undefined, quantile: level };
    const near = () => UNSCATTERED;
    const found = findConcurrency(service, openServer({ at: () => 1, near }), limits);
    assert.ok(Math.abs(found - 50) <= 2, `${found} instead of 50`);
  });
