/**
 * The highest rate of requests up to which a pool keeps its limits at all rates: the first that breaks one is found in
 * small steps and by halving, on the same random numbers at each rate.
 */
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
  /** Where the quantile stays about at the limit over many rates: the limit breaks somewhere in this range. */
  readonly plateau: Plateau | undefined;
  /** At that rate, at the quantile of the limits. */
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
/** So low that servers are idle, however long their answers are. */
const LOWEST_RATE = 1e-6;
/** The answer is found to this share of itself. */
const PRECISION = 0.01;

/** Far below a limit, one run at each of few rates is enough. Near it, a single run says little, and a quantile may rise and fall. */
const FAR = { step: 1.15, runs: 1 };
const NEAR = { step: 1.04, runs: 3 };
const NEAR_USE = 0.7;

/** The share of slow requests is known to this share of itself: where a limit is at a quantile, it may be at this one. */
const SHARE_ERROR = 0.2;
/** Rates that are further apart than this are no answer within 15 %. */
const PLATEAU = 1.15;
/** A limit that is about what an idle pool takes says nothing about rates. Then the range begins here, as a share of its end. */
const LOWEST_SHARE = 0.5;

interface Trial {
  readonly rate: number;
  readonly outcome: QueueOutcome | undefined;
  /** Of the larger part of a limit that is used at the stricter quantile; above 1 it is broken. */
  readonly strictUse: number;
  readonly brokenBy: LimitedBy | undefined;
  /** The same at the stricter quantile. */
  readonly strictlyBrokenBy: LimitedBy | undefined;
}

/**
 * Undefined when not even an idle pool keeps the limits. Throws when the limits hold only at loads below those that the
 * samples show, so that nothing is known of them.
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

/** The first break of a limit: the highest rate found up to which it holds at all lower ones, and what breaks above. */
interface Break {
  readonly good: Trial;
  readonly limitedBy: LimitedBy;
}

interface Found extends Break {
  readonly plateau: Plateau | undefined;
}

/**
 * In unlike pools a quantile may hardly change over a wide range of rates: there the slowest server gets about as many
 * requests as the quantile leaves out. Where the answer would depend on the last percent of that share, the truth is
 * somewhere in the range, and the middle is the least far from all of it.
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
  /** Ends, since at some rate more is under way than was ever seen. */
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
