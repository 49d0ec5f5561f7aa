/** Simulates a pool, from whose requests capacity is learned, and with which the answer is compared. */

import { type LatencyLimits, quantileOf } from '../../../src/prediction/capacity/search-rates.ts';
import type { LatencyModel } from '../../../src/prediction/model/model.ts';
import { fillMetrics } from '../../../src/prediction/schema/input-fields.ts';
import type { Observation } from '../../../src/prediction/schema/observation.ts';
import { appendObservation, createObservationTable } from '../../../src/prediction/schema/observation-table.ts';
import { createRandom } from '../../../src/prediction/simulator/random-draws.ts';
import { createServer } from '../../../src/prediction/simulator/server.ts';
import { type RoutingPolicy, type SimulatedObservation, simulate } from '../../../src/prediction/simulator/simulate.ts';
import { createRooflineTimer, GPUS, type Gpu } from '../../../src/prediction/simulator/step-time.ts';
import { createWorkload } from '../../../src/prediction/simulator/workload.ts';
import { trainModel } from '../../../src/prediction/training/train-model.ts';

const MEDIAN_OUTPUT_TOKENS = 120;
/** The mean of a log-normal distribution with sigma 0.7, as the workload draws. */
export const MEAN_OUTPUT_TOKENS = MEDIAN_OUTPUT_TOKENS * Math.exp(0.7 ** 2 / 2);

export interface PoolRun {
  readonly kind: 'poisson' | 'bursts';
  readonly gpus: readonly Gpu[];
  readonly requestsPerSecond: number;
  readonly requests: number;
  readonly seed: number;
  /** With the part in which the pool fills. */
  readonly isWhole?: boolean;
}

/** Simulates a pool where each request goes to a server with the fewest under way; leaves out the part in which the pool fills. */
export function runPool({
  kind,
  gpus,
  requestsPerSecond,
  requests,
  seed,
  isWhole = false,
}: PoolRun): SimulatedObservation[] {
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
  const observed = simulate(options);
  return isWhole ? observed : observed.filter(({ outcome }) => outcome.dispatchedMs > 0.2 * durationMs);
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
  const input = { podType: '', ...fillMetrics(() => 0), ...metrics, serverIp: server };
  const { outputTokens } = outcome.request;
  return { targetModel: 'm', input, atMs: originMs + outcome.dispatchedMs, ttftMs, tpotMs, outputTokens };
}

export interface Recordings {
  readonly kind: PoolRun['kind'];
  readonly gpus: readonly Gpu[];
  /** One recording at each rate, one after the other. */
  readonly rates: readonly number[];
  /** Requests to each server in one recording. */
  readonly requestsEachServer?: number;
  readonly seed?: number;
  readonly isWhole?: boolean;
}

/** The shares of the saturation at which each recording is made: bursts, steady rates, busy servers, one steady rate. */
export const RECORDINGS: Readonly<Record<string, Pick<Recordings, 'kind' | 'rates' | 'requestsEachServer'>>> = {
  bursts: { kind: 'bursts', rates: [0.13, 0.26, 0.4, 0.53, 0.66, 0.8, 0.93, 1.07] },
  steady: { kind: 'poisson', rates: [0.2, 0.4, 0.6, 0.8, 1, 1.2] },
  busy: { kind: 'poisson', rates: [0.7, 0.85, 1, 1.1] },
  one: { kind: 'poisson', rates: [0.9], requestsEachServer: 3000 },
};

export interface LearnedPool {
  readonly model: LatencyModel;
  readonly samples: readonly Observation[];
}

export function learnPool({
  kind,
  gpus,
  rates,
  requestsEachServer = 1200,
  seed = 11,
  isWhole = false,
}: Recordings): LearnedPool {
  const table = createObservationTable();
  const requests = requestsEachServer * gpus.length;
  const samples = rates.flatMap((requestsPerSecond, i) =>
    runPool({ kind, gpus, requestsPerSecond, requests, seed: seed + i, isWhole }).map((observed) =>
      toObservation(observed, 1e12 + i * 1e7),
    ),
  );
  for (const sample of samples) appendObservation(table, sample);
  return { model: trainModel('m@1', table), samples };
}

/** The larger ratio of a simulated latency to its limit at this rate, over all runs together: above 1 a limit is exceeded. */
export function measureUse(
  gpus: readonly Gpu[],
  requestsPerSecond: number,
  { limits, seeds = [7] }: { readonly limits: LatencyLimits; readonly seeds?: readonly number[] },
): number {
  const observed = seeds.flatMap((seed) =>
    runPool({ kind: 'poisson', gpus, requestsPerSecond, requests: 2500 * gpus.length, seed }),
  );
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

export function findGpu(name: string): Gpu {
  return GPUS.find((candidate) => candidate.name === name)!;
}
