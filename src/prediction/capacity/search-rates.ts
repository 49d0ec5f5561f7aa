/** Finds rates at which a pool breaks its limits, by simulating one rate after the other with the same random numbers. */
import { createRandom } from '../simulator/random-draws.ts';
import { type QueueOutcome, type QueuePool, simulateQueue } from './simulate-queue.ts';

export interface LatencyLimits {
  /** Undefined if there is no limit of this time. */
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
  /** The share of requests that must stay below the limits, such as 0.9. */
  readonly quantile: number;
}

export type LimitedBy = 'ttft' | 'tpot' | 'observed load';

const REQUESTS_EACH_SERVER = 3000;
const MAX_REQUESTS = 15_000;
/** A rate at which servers are idle, however long their answers are. */
export const LOWEST_RATE = 1e-6;
/** Relative tolerance of the rate that is found. */
const PRECISION = 0.01;

/** Far below a limit, one simulation at each of few rates is enough. Near it, quantiles of a single run are too noisy. */
const FAR = { step: 1.15, runs: 1 };
const NEAR = { step: 1.04, runs: 3 };
const NEAR_USE = 0.7;

/** Relative uncertainty of the share of slow requests: a limit that breaks at one quantile may break at a near one. */
const SHARE_ERROR = 0.1;

/** A quantile that leaves out fewer requests than the requested one, that one itself, and one that leaves out more. */
export type Strictness = 'strict' | 'asked' | 'lenient';

export interface Trial {
  readonly rate: number;
  readonly outcome: QueueOutcome | undefined;
  /** The quantile divided by its limit, of TTFT or TPOT, whichever is larger; above 1 the limit is broken. */
  readonly strictUse: number;
  readonly brokenBy: Readonly<Record<Strictness, LimitedBy | undefined>>;
}

/** The highest rate found at which the limits hold at all lower rates too, and the limit that breaks above it. */
export interface Break {
  readonly good: Trial;
  readonly limitedBy: LimitedBy;
}

type ReadBreak = (trial: Trial) => LimitedBy | undefined;

/** Raises the rate from about one request under way at each server, by Little's law. Each rate is tried once. */
export function createSearch(pool: QueuePool, limits: LatencyLimits, idle: Trial) {
  const tried = new Map<number, Trial>([[idle.rate, idle]]);
  const attempt = (rate: number, runs = NEAR.runs): Trial => {
    const known = tried.get(rate) ?? tryRate(pool, limits, { rate, runs });
    tried.set(rate, known);
    return known;
  };
  /** Ends because at some rate more requests are under way than in any sample. */
  function rise(readBreak: ReadBreak): readonly [good: Trial, bad: Trial] {
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
    /** Rising by rate. */
    listTried: () => [...tried.values()].sort((one, other) => one.rate - other.rate),
    findBreak(readBreak: ReadBreak): Break {
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

export function tryRate(
  pool: QueuePool,
  limits: LatencyLimits,
  { rate, runs }: { readonly rate: number; readonly runs: number },
): Trial {
  const outcome = simulateRuns(pool, rate, runs);
  if (outcome === undefined)
    return {
      rate,
      outcome,
      strictUse: 1,
      brokenBy: { strict: 'observed load', asked: 'observed load', lenient: 'observed load' },
    };
  const isUnseen = pool.servers.some(({ load }, i) => outcome.meanUnderWay[i]! > load.seen);
  const unseen = isUnseen ? 'observed load' : undefined;
  const useAt = (error: number) =>
    measureUse(outcome, { ...limits, quantile: limits.quantile + error * (1 - limits.quantile) });
  const strict = useAt(SHARE_ERROR);
  return {
    rate,
    outcome,
    strictUse: Math.max(strict.ttft, strict.tpot),
    brokenBy: {
      strict: findBroken(strict) ?? unseen,
      asked: findBroken(useAt(0)) ?? unseen,
      lenient: findBroken(useAt(-SHARE_ERROR)) ?? unseen,
    },
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

function meanStaySeconds({ ttftMs, tpotMs }: QueueOutcome, outputTokens: number): number {
  const mean = (times: Float64Array) => times.reduce((sum, ms) => sum + ms, 0) / times.length;
  return (mean(ttftMs) + outputTokens * mean(tpotMs)) / 1000;
}

export function quantileOf(sorted: Float64Array, quantile: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))] ?? Number.NaN;
}
