/** The highest rate of requests at which a pool keeps its limits: found by halving, on the same random numbers at each rate. */
import { Failure } from '../../errors.ts';
import { createRandom } from '../simulator/random-draws.ts';
import { type QueueOutcome, type QueuePool, simulateQueue } from './simulate-queue.ts';

export interface LatencyLimits {
  /** Undefined for no limit. */
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
  /** The share of requests that must stay below, as 0.9. */
  readonly quantile: number;
}

export interface Capacity {
  readonly requestsPerSecond: number;
  /** The mean of requests under way in the whole pool at that rate. */
  readonly concurrency: number;
  /**
   * What ends at a higher rate: a limit, or what the samples show of the load. With `observed load` the capacity is at
   * least this: the model is not asked for loads that it has not seen.
   */
  readonly limitedBy: LimitedBy;
  /** At that rate, at the quantile of the limits. */
  readonly ttftMs: number;
  readonly tpotMs: number;
  readonly servers: readonly ServerCapacity[];
}

export type LimitedBy = 'ttft' | 'tpot' | 'observed load';

export interface ServerCapacity {
  readonly name: string;
  readonly requestsPerSecond: number;
  readonly concurrency: number;
}

const REQUESTS_EACH_SERVER = 3000;
const MAX_REQUESTS = 15_000;
/** So low that servers are idle, however long their answers are. */
const LOWEST_RATE = 1e-6;
/** The answer is found to this share of itself. */
const PRECISION = 0.01;
const STEP = 1.15;

interface Trial {
  readonly rate: number;
  readonly outcome: QueueOutcome | undefined;
  readonly brokenBy: LimitedBy | undefined;
}

/**
 * Undefined when not even an idle pool keeps the limits. Throws when the limits hold only at loads below those that the
 * samples show, so that nothing is known of them.
 */
export function findCapacity(pool: QueuePool, limits: LatencyLimits): Capacity | undefined {
  const attempt = (rate: number) => tryRate(pool, limits, rate);
  let good = attempt(LOWEST_RATE);
  if (good.brokenBy === 'observed load') throw refuseIdleSamples(pool);
  if (good.brokenBy !== undefined) {
    if (!isBrokenIdle(pool, good, limits))
      checkLoadSeen(
        pool,
        pool.servers.map(() => IDLE_UNDER_WAY),
      );
    return undefined;
  }
  // By Little's law, at that rate each server has about one request under way.
  let bad = attempt(pool.servers.length / meanStaySeconds(good.outcome!, pool.outputTokens));
  // In small steps: in unlike pools a quantile can rise above a limit, fall below it and rise again. Ends, since at some
  // rate more is under way than was ever seen.
  while (bad.brokenBy === undefined) {
    good = bad;
    bad = attempt(good.rate * STEP);
  }
  while (bad.rate - good.rate > PRECISION * good.rate) {
    const middle = attempt((good.rate + bad.rate) / 2);
    if (middle.brokenBy === undefined) good = middle;
    else bad = middle;
  }
  checkLoadSeen(pool, good.outcome!.meanUnderWay);
  return describe(pool, { good, limitedBy: bad.brokenBy!, quantile: limits.quantile });
}

/** An idle server is seen when samples met no more than this. */
const IDLE_UNDER_WAY = 2;

/** Serving n + 1 requests together is never slower than one after the other, so an idle server is at most so much faster. */
function isBrokenIdle(
  { servers }: QueuePool,
  { outcome }: Trial,
  { ttftMs, tpotMs, quantile }: LatencyLimits,
): boolean {
  const share = 1 / (1 + Math.max(...servers.map(({ load }) => load.lowest)));
  if (outcome === undefined) return false;
  const isTtftBroken = ttftMs !== undefined && share * quantileOf(outcome.ttftMs, quantile) > ttftMs;
  return isTtftBroken || (tpotMs !== undefined && share * quantileOf(outcome.tpotMs, quantile) > tpotMs);
}

function checkLoadSeen({ servers }: Pick<QueuePool, 'servers'>, meanUnderWay: readonly number[]): void {
  const unseen = servers.find(({ load }, i) => meanUnderWay[i]! < load.lowest);
  if (unseen === undefined) return;
  throw new Failure(
    'invalid',
    `Cannot find the capacity: the limits hold at most below the loads that the samples show (server "${unseen.name}" hardly ever had fewer than ${unseen.load.lowest} requests under way); observe the servers at lower rates too`,
  );
}

/** Nothing is known of any load. */
function refuseIdleSamples({ servers }: Pick<QueuePool, 'servers'>): Failure {
  const { name } = servers.find(({ load }) => load.seen === 0) ?? servers[0]!;
  return new Failure(
    'invalid',
    `Cannot find the capacity: hardly any sample of the server "${name}" met another request (num_request_waiting + num_request_running is 0); observe the servers at higher rates too`,
  );
}

function tryRate(pool: QueuePool, { ttftMs, tpotMs, quantile }: LatencyLimits, rate: number): Trial {
  const requests = Math.min(MAX_REQUESTS, REQUESTS_EACH_SERVER * pool.servers.length);
  const outcome = simulateQueue(pool, { requestsPerSecond: rate, requests, random: createRandom(1) });
  if (outcome === undefined) return { rate, outcome, brokenBy: 'observed load' };
  const isTtftBroken = ttftMs !== undefined && quantileOf(outcome.ttftMs, quantile) > ttftMs;
  const isTpotBroken = tpotMs !== undefined && quantileOf(outcome.tpotMs, quantile) > tpotMs;
  const isUnseen = pool.servers.some(({ load }, i) => outcome.meanUnderWay[i]! > load.seen);
  return {
    rate,
    outcome,
    brokenBy: isTtftBroken ? 'ttft' : isTpotBroken ? 'tpot' : isUnseen ? 'observed load' : undefined,
  };
}

function describe(
  { servers }: QueuePool,
  found: { readonly good: Trial; readonly limitedBy: Capacity['limitedBy']; readonly quantile: number },
): Capacity {
  const { rate, outcome } = found.good;
  const { meanUnderWay, shares, ttftMs, tpotMs } = outcome!;
  return {
    requestsPerSecond: rate,
    concurrency: meanUnderWay.reduce((sum, mean) => sum + mean, 0),
    limitedBy: found.limitedBy,
    ttftMs: quantileOf(ttftMs, found.quantile),
    tpotMs: quantileOf(tpotMs, found.quantile),
    servers: servers.map(({ name }, i) => ({
      name,
      requestsPerSecond: rate * shares[i]!,
      concurrency: meanUnderWay[i]!,
    })),
  };
}

function meanStaySeconds({ ttftMs, tpotMs }: QueueOutcome, outputTokens: number): number {
  const mean = (times: Float64Array) => times.reduce((sum, ms) => sum + ms, 0) / times.length;
  return (mean(ttftMs) + outputTokens * mean(tpotMs)) / 1000;
}

export function quantileOf(sorted: Float64Array, quantile: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))] ?? Number.NaN;
}
