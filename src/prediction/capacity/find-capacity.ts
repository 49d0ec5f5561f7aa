/**
 * Finds the highest request rate at which a pool keeps its latency limits, at this rate and all lower ones. The rate rises in
 * small steps until a limit breaks, and bisection finds the rate between. Each rate is simulated with the same random numbers.
 */
import { Failure } from '../../errors.ts';
import { createRandom } from '../simulator/random-draws.ts';
import { type QueueOutcome, type QueuePool, simulateQueue } from './simulate-queue.ts';

export interface LatencyLimits {
  /** Undefined if there is no limit of this time. */
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
  /** The share of requests that must stay below the limits, such as 0.9. */
  readonly quantile: number;
}

export interface Capacity {
  readonly requestsPerSecond: number;
  /** The mean of requests under way in the whole pool at that rate. */
  readonly concurrency: number;
  /**
   * What prevents a higher rate: a limit that breaks, or the highest load in the samples. With `observed load` the capacity may be
   * higher, but the model is not asked for loads that no sample has.
   */
  readonly limitedBy: LimitedBy;
  /** Present where the quantile stays near the limit over many rates, so that the limit breaks somewhere in this range. */
  readonly plateau: Plateau | undefined;
  /** The latencies at that rate, at the quantile of the limits. */
  readonly ttftMs: number;
  readonly tpotMs: number;
  readonly servers: readonly ServerCapacity[];
}

export interface Plateau {
  readonly fromRequestsPerSecond: number;
  readonly toRequestsPerSecond: number;
}

export type LimitedBy = 'ttft' | 'tpot' | 'observed load';

export interface ServerCapacity {
  readonly name: string;
  readonly requestsPerSecond: number;
  readonly concurrency: number;
}

const REQUESTS_EACH_SERVER = 3000;
const MAX_REQUESTS = 15_000;
/** A rate at which servers are idle, however long their answers are. */
const LOWEST_RATE = 1e-6;
/** Relative tolerance of the rate that is found. */
const PRECISION = 0.01;

/** Far below a limit, one simulation at each of few rates is enough. Near it, quantiles of a single run are too noisy. */
const FAR = { step: 1.15, runs: 1 };
const NEAR = { step: 1.04, runs: 3 };
const NEAR_USE = 0.7;

/** Relative uncertainty of the share of slow requests: a limit that breaks at one quantile may break at a near one. */
const SHARE_ERROR = 0.2;
/** A wider range of rates than this is reported as a range, since no rate in it is certain to 15 %. */
const PLATEAU = 1.15;
/** Start of the range, as a share of its end, if the limit is close to the latency of an idle pool and so depends on no rate. */
const LOWEST_SHARE = 0.5;

interface Trial {
  readonly rate: number;
  readonly outcome: QueueOutcome | undefined;
  /** The quantile over its limit, of TTFT or TPOT, whichever is larger; above 1 the limit is broken. */
  readonly strictUse: number;
  readonly brokenBy: LimitedBy | undefined;
  /** The same at the stricter quantile. */
  readonly strictlyBrokenBy: LimitedBy | undefined;
}

/**
 * Undefined if even an idle pool breaks a limit. Throws if the limits hold only at loads below those of the samples, about
 * which nothing is known.
 */
export function findCapacity(pool: QueuePool, limits: LatencyLimits): Capacity | undefined {
  const idle = tryRate(pool, limits, { rate: LOWEST_RATE, runs: 1 });
  if (idle.brokenBy === 'observed load') throw refuseIdleSamples(pool);
  if (idle.brokenBy !== undefined) {
    if (!isBrokenIdle(pool, idle, limits))
      checkLoadSeen(
        pool,
        pool.servers.map(() => IDLE_UNDER_WAY),
      );
    return undefined;
  }
  const search = createSearch(pool, limits, idle);
  const strict = search.findBreak((trial) => trial.strictlyBrokenBy);
  const plain = search.findBreak((trial) => trial.brokenBy);
  const found = chooseAnswer({ strict, plain }, search.attempt);
  checkLoadSeen(pool, found.good.outcome!.meanUnderWay);
  return describe(pool, { ...found, quantile: limits.quantile });
}

/** The highest rate found at which the limits hold at all lower rates too, and the limit that breaks above it. */
interface Break {
  readonly good: Trial;
  readonly limitedBy: LimitedBy;
}

interface Found extends Break {
  readonly plateau: Plateau | undefined;
}

/**
 * In a heterogeneous pool a quantile may hardly change over a wide range of rates, because the slowest server gets about the
 * share of requests that the quantile leaves out. If the answer depends on a percent of that share, the capacity is somewhere
 * in the range, and the middle has the smallest largest error.
 */
function chooseAnswer(
  { strict, plain }: Readonly<Record<'strict' | 'plain', Break>>,
  attempt: (rate: number) => Trial,
): Found {
  const [from, to] = [strict.good.rate, plain.good.rate];
  if (to <= PLATEAU * from) return { ...plain, plateau: undefined };
  const plateau = { fromRequestsPerSecond: from <= LOWEST_RATE ? 0 : from, toRequestsPerSecond: to };
  const good = attempt(Math.sqrt(Math.max(from, LOWEST_SHARE * to) * to));
  return { good, limitedBy: strict.limitedBy, plateau };
}

/** Raises the rate from about one request under way at each server, by Little's law. Each rate is tried once. */
function createSearch(pool: QueuePool, limits: LatencyLimits, idle: Trial) {
  const tried = new Map<number, Trial>();
  const attempt = (rate: number, runs = NEAR.runs): Trial => {
    const known = tried.get(rate) ?? tryRate(pool, limits, { rate, runs });
    tried.set(rate, known);
    return known;
  };
  /** Ends because at some rate more requests are under way than in any sample. */
  function rise(readBreak: (trial: Trial) => LimitedBy | undefined): readonly [good: Trial, bad: Trial] {
    let good = idle;
    let bad = attempt(pool.servers.length / meanStaySeconds(idle.outcome!, pool.outputTokens));
    while (readBreak(bad) === undefined) {
      good = bad;
      const { step, runs } = good.strictUse > NEAR_USE ? NEAR : FAR;
      bad = attempt(good.rate * step, runs);
    }
    return [good, bad];
  }
  return {
    attempt,
    findBreak(readBreak: (trial: Trial) => LimitedBy | undefined): Break {
      const brokenIdle = readBreak(idle);
      if (brokenIdle !== undefined) return { good: idle, limitedBy: brokenIdle };
      let [good, bad] = rise(readBreak);
      while (bad.rate - good.rate > PRECISION * good.rate) {
        const middle = attempt((good.rate + bad.rate) / 2);
        if (readBreak(middle) === undefined) good = middle;
        else bad = middle;
      }
      return { good, limitedBy: readBreak(bad)! };
    },
  };
}

/** The samples include an idle server if some met at most this many requests. */
const IDLE_UNDER_WAY = 2;

/** Serving n + 1 requests together is never slower than one after the other, which bounds how much faster an idle server is. */
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

/** The refusal if no load is known at which the limits hold. */
function refuseIdleSamples({ servers }: Pick<QueuePool, 'servers'>): Failure {
  const { name } = servers.find(({ load }) => load.seen === 0) ?? servers[0]!;
  return new Failure(
    'invalid',
    `Cannot find the capacity: hardly any sample of the server "${name}" met another request (num_request_waiting + num_request_running is 0); observe the servers at higher rates too`,
  );
}

function tryRate(
  pool: QueuePool,
  limits: LatencyLimits,
  { rate, runs }: { readonly rate: number; readonly runs: number },
): Trial {
  const outcome = simulateRuns(pool, rate, runs);
  if (outcome === undefined)
    return { rate, outcome, strictUse: 1, brokenBy: 'observed load', strictlyBrokenBy: 'observed load' };
  const isUnseen = pool.servers.some(({ load }, i) => outcome.meanUnderWay[i]! > load.seen);
  const unseen = isUnseen ? 'observed load' : undefined;
  const { quantile } = limits;
  const plain = measureUse(outcome, limits);
  const strict = measureUse(outcome, { ...limits, quantile: quantile + SHARE_ERROR * (1 - quantile) });
  return {
    rate,
    outcome,
    strictUse: Math.max(strict.ttft, strict.tpot),
    brokenBy: findBroken(plain) ?? unseen,
    strictlyBrokenBy: findBroken(strict) ?? unseen,
  };
}

type Use = Readonly<Record<'ttft' | 'tpot', number>>;

function measureUse(
  { ttftMs, tpotMs }: QueueOutcome,
  {
    ttftMs: ttftLimitMs = Number.POSITIVE_INFINITY,
    tpotMs: tpotLimitMs = Number.POSITIVE_INFINITY,
    quantile,
  }: LatencyLimits,
): Use {
  return { ttft: quantileOf(ttftMs, quantile) / ttftLimitMs, tpot: quantileOf(tpotMs, quantile) / tpotLimitMs };
}

function findBroken({ ttft, tpot }: Use): LimitedBy | undefined {
  if (ttft > 1) return 'ttft';
  return tpot > 1 ? 'tpot' : undefined;
}

/** All requests of some runs together. */
function simulateRuns(pool: QueuePool, requestsPerSecond: number, runs: number): QueueOutcome | undefined {
  const requests = Math.min(MAX_REQUESTS, REQUESTS_EACH_SERVER * pool.servers.length);
  const outcomes: QueueOutcome[] = [];
  for (let run = 1; run <= runs; run++) {
    const outcome = simulateQueue(pool, { requestsPerSecond, requests, random: createRandom(run) });
    if (outcome === undefined) return undefined;
    outcomes.push(outcome);
  }
  const meanOf = (read: (outcome: QueueOutcome) => readonly number[]) =>
    pool.servers.map((_, i) => outcomes.reduce((sum, outcome) => sum + read(outcome)[i]!, 0) / runs);
  return {
    ttftMs: Float64Array.from(outcomes.flatMap(({ ttftMs }) => [...ttftMs])).sort(),
    tpotMs: Float64Array.from(outcomes.flatMap(({ tpotMs }) => [...tpotMs])).sort(),
    meanUnderWay: meanOf(({ meanUnderWay }) => meanUnderWay),
    shares: meanOf(({ shares }) => shares),
  };
}

function describe({ servers }: QueuePool, found: Found & { readonly quantile: number }): Capacity {
  const { rate, outcome } = found.good;
  const { meanUnderWay, shares, ttftMs, tpotMs } = outcome!;
  return {
    requestsPerSecond: rate,
    concurrency: meanUnderWay.reduce((sum, mean) => sum + mean, 0),
    limitedBy: found.limitedBy,
    plateau: found.plateau,
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
