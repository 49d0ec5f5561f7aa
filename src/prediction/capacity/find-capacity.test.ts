/** What the learned model says about capacity, held against the simulator that the model learned from. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Observation } from '../schema/observation.ts';
import { appendObservation, createObservationTable } from '../schema/observation-table.ts';
import { createRandom } from '../simulator/random-draws.ts';
import { createServer } from '../simulator/server.ts';
import { type RoutingPolicy, type SimulatedObservation, simulate } from '../simulator/simulate.ts';
import { createRooflineTimer, GPUS, type Gpu } from '../simulator/step-time.ts';
import { createWorkload } from '../simulator/workload.ts';
import { trainModel } from '../training/train-model.ts';
import { findCapacity, type LatencyLimits, quantileOf } from './find-capacity.ts';
import { countUnderWay, fitLoadCurve, type LoadMetrics } from './load-curve.ts';
import { createObservedPool } from './observed-pool.ts';

const MEDIAN_OUTPUT_TOKENS = 120;
/** Of a log-normal distribution with sigma 0.7, as the workload draws. */
const MEAN_OUTPUT_TOKENS = MEDIAN_OUTPUT_TOKENS * Math.exp(0.7 ** 2 / 2);

interface Run {
  readonly kind: 'poisson' | 'bursts';
  readonly gpus: readonly Gpu[];
  readonly requestsPerSecond: number;
  readonly requests: number;
  readonly seed: number;
}

/** A pool whose requests each go to a server with the fewest under way; without the part in which it fills. */
function run({ kind, gpus, requestsPerSecond, requests, seed }: Run): SimulatedObservation[] {
  const servers = gpus.map((gpu, i) =>
    createServer({
      name: `${gpu.name}-${i}`,
      timer: createRooflineTimer(gpu),
      kvCapacityTokens: gpu.kvCapacityTokens,
      maxBatchTokens: 2048,
      maxSequences: 256,
      blockTokens: 512,
    }),
  );
  const durationMs = (1000 * requests) / requestsPerSecond;
  const workload = createWorkload(
    {
      kind,
      requestsPerSecond,
      durationMs,
      medianInputTokens: 900,
      medianOutputTokens: MEDIAN_OUTPUT_TOKENS,
      prefixGroups: 24,
      sharedShare: 0.5,
      blockTokens: 512,
    },
    createRandom(seed),
  );
  const options = {
    servers,
    requests: workload,
    policy: createLeastUnderWay(),
    scrapeIntervalMs: 200,
    scrapeDelayMs: 50,
  };
  return simulate(options).filter(({ outcome }) => outcome.dispatchedMs > 0.2 * durationMs);
}

function createLeastUnderWay(): RoutingPolicy {
  let turn = 0;
  return {
    name: 'least under way',
    choose(_request, candidates) {
      const start = turn++ % candidates.length;
      const inTurn = candidates.map((_, i) => (start + i) % candidates.length);
      return inTurn.reduce((best, i) => (candidates[i]!.underWay < candidates[best]!.underWay ? i : best));
    },
  };
}

function toObservation({ candidate, outcome, ttftMs, tpotMs }: SimulatedObservation, originMs: number): Observation {
  const { server, underWay: _, sentSinceScrape: __, ...metrics } = candidate;
  const input = { podType: '', hbmUtilization: 0, ...metrics, serverIp: server };
  return { targetModel: 'm', input, atMs: originMs + outcome.dispatchedMs, ttftMs, tpotMs };
}

function learn(gpus: readonly Gpu[], rates: readonly number[]) {
  const table = createObservationTable();
  const samples = rates.flatMap((requestsPerSecond, i) =>
    run({ kind: 'bursts', gpus, requestsPerSecond, requests: 1200 * gpus.length, seed: 11 + i }).map((observed) =>
      toObservation(observed, 1e12 + i * 1e7),
    ),
  );
  for (const sample of samples) appendObservation(table, sample);
  return { model: trainModel('m@1', table), samples };
}

/** The larger part of a limit that the simulator used at this rate: above 1 it broke one. */
function measureUse(gpus: readonly Gpu[], requestsPerSecond: number, limits: LatencyLimits): number {
  const observed = run({ kind: 'poisson', gpus, requestsPerSecond, requests: 2500 * gpus.length, seed: 7 });
  const use = (times: readonly number[], limitMs = Number.POSITIVE_INFINITY) =>
    quantileOf(Float64Array.from(times).sort(), limits.quantile) / limitMs;
  return Math.max(
    use(
      observed.map(({ ttftMs }) => ttftMs),
      limits.ttftMs,
    ),
    use(
      observed.flatMap(({ tpotMs }) => tpotMs ?? []),
      limits.tpotMs,
    ),
  );
}

const gpu = (name: string): Gpu => GPUS.find((candidate) => candidate.name === name)!;

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
      assert.ok(measureUse(gpus, requestsPerSecond / 1.15, limits) < 1, about);
      assert.ok(measureUse(gpus, requestsPerSecond / 0.85, limits) > 1, about);
      const byServer = capacity.servers.reduce((sum, server) => sum + server.requestsPerSecond, 0);
      assert.ok(Math.abs(byServer / requestsPerSecond - 1) < 1e-9);
    }
  });
}

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
  assert.ok(
    lax.requestsPerSecond > 4 && lax.concurrency <= Math.max(...samples.map(({ input }) => countUnderWay(input))),
  );
  assert.throws(
    () => createObservedPool({ model, samples, servers: ['nowhere'], podType: '', outputTokens: 100 }),
    /no sample is of the server "nowhere"; known are medium-0/,
  );
  assert.throws(
    () => createObservedPool({ model, samples, servers: undefined, podType: 'decode', outputTokens: 100 }),
    /0 samples of the pod type "decode", it must be at least 50/,
  );
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
