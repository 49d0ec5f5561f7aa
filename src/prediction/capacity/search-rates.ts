/**
 * Simulates a pool at one request rate after the other until a latency limit breaks. The rate rises by steps, then by bisection between
 * the first rate that breaks a limit and the one before. Each rate is simulated with the same random numbers.
 */
import { Failure } from '../../errors.ts';
import { createRandom } from '../simulator/random-draws.ts';
import { type QueueOutcome, type QueuePool, simulateQueue } from './simulate-queue.ts';

export interface LatencyLimits {
  /** Undefined without a limit of this time. */
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
  /** The share of requests that must stay below the limits, such as 0.9. */
  readonly quantile: number;
}

export type LimitedBy = 'ttft' | 'tpot' | 'observed load';

const REQUESTS_EACH_SERVER = 3000;
/** The requests of a run, unless more are needed to fill the servers. */
const USUAL_REQUESTS = 15_000;
/**
 * A run has at least this many requests for each that is under way. The pool is empty at first, so the first fifth of the run, at
 * least two mean stays, is not measured: after it, the pool is nearly as full as it gets.
 */
const REQUESTS_EACH_UNDER_WAY = 10;
/** The most requests in all runs of a search together: about a minute of simulation for a pool of 200 servers. */
const MAX_SIMULATED = 30_000_000;
/** The shortest stay of a request. It gives a highest rate to a pool whose stay is measured as 0. */
const LEAST_STAY_SECONDS = 1e-6;
/** A rate at which servers are idle unless one answer takes days. */
export const LOWEST_RATE = 1e-6;
/** Relative tolerance of the rate that is found. */
const PRECISION = 0.01;

/** Far below a limit, one simulation for each of a few rates is enough. Near it, the quantiles of a single run are too noisy. */
const FAR = { step: 1.15, runs: 1 };
const NEAR = { step: 1.04, runs: 3 };
const NEAR_USE = 0.7;

/** Relative uncertainty of the share of slow requests: a limit is checked at quantiles on both sides too. */
const SHARE_ERROR = 0.1;

/**
 * The share of requests that may be slower than a limit: `asked` is the rest of its quantile (at 0.9, 10 %), `strict` a tenth less
 * (9 %), `lenient` a tenth more (11 %).
 */
export type Strictness = 'strict' | 'asked' | 'lenient';

export interface Trial {
  readonly rate: number;
  readonly outcome: QueueOutcome | undefined;
  /** True if some server has more requests under way than in any sample. */
  readonly isUnseen: boolean;
  /** The larger of TTFT and TPOT divided by its limit, at the strict quantile; above 1, the limit is broken. */
  readonly strictUse: number;
  readonly brokenBy: Readonly<Record<Strictness, LimitedBy | undefined>>;
}

/** The highest rate up to which the limits hold at all rates tried, and the limit that breaks above it. */
export interface Break {
  readonly good: Trial;
  readonly limitedBy: LimitedBy;
}

type ReadBreak = (trial: Trial) => LimitedBy | undefined;

/** Raises the rate, from about one request under way at each server (by Little's law). Each rate is tried once. */
export function createSearch(pool: QueuePool, limits: LatencyLimits, idle: Trial) {
  const tried = new Map<number, Trial>([[idle.rate, idle]]);
  const staySeconds = Math.max(LEAST_STAY_SECONDS, meanStaySeconds(idle.outcome!, pool.outputTokens));
  /** Above this rate, by Little's law, more requests are under way than in any sample: no stay is shorter than in an idle pool. */
  const highestRate = countSeen(pool) / staySeconds;
  const budget = createBudget(pool);
  /** Sorted by rate. */
  const listTried = () => [...tried.values()].sort((one, other) => one.rate - other.rate);

  function simulate(rate: number, runs: number): Trial {
    if (rate > highestRate) return toUnseen(rate);
    const below = listTried().findLast((trial) => trial.rate <= rate && trial.outcome !== undefined) ?? idle;
    const size = sizeRuns(pool, runs, (countUnderWay(below.outcome!) * rate) / below.rate);
    budget.spend(size);
    return tryRate(pool, limits, { rate, ...size });
  }

  const attempt = (rate: number, runs = NEAR.runs): Trial => {
    const known = tried.get(rate) ?? simulate(rate, runs);
    tried.set(rate, known);
    return known;
  };
  /** Terminates, because at some rate more requests are under way than in any sample. */
  function rise(readBreak: ReadBreak): readonly [good: Trial, bad: Trial] {
    let good = idle;
    let bad = attempt(pool.servers.length / staySeconds);
    while (readBreak(bad) === undefined) {
      good = bad;
      const { step, runs } = good.strictUse > NEAR_USE ? NEAR : FAR;
      bad = attempt(good.rate * step, runs);
    }
    return [good, bad];
  }
  return {
    attempt,
    listTried,
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

/** The number of runs, and the requests of each. */
export interface RunSize {
  readonly runs: number;
  readonly requests: number;
}

/** Makes fewer runs if each is long, so that all have about as many requests together. */
export function sizeRuns({ servers }: QueuePool, runs: number, underWay: number): RunSize {
  const usual = Math.min(USUAL_REQUESTS, REQUESTS_EACH_SERVER * servers.length);
  const requests = Math.max(usual, Math.ceil(REQUESTS_EACH_UNDER_WAY * underWay));
  return { requests, runs: Math.max(1, Math.round((runs * usual) / requests)) };
}

export function createBudget({ servers }: QueuePool, maxSimulated = MAX_SIMULATED) {
  let left = maxSimulated;
  return {
    /** Throws `invalid` when the search would take minutes. */
    spend({ runs, requests }: RunSize): void {
      left -= runs * requests;
      if (left >= 0) return;
      throw new Failure(
        'invalid',
        `Cannot find the capacity: ${servers.length} servers with so many requests under way take too long to simulate; name fewer servers`,
        { field: 'servers' },
      );
    },
  };
}

function countSeen({ servers }: QueuePool): number {
  return servers.reduce((sum, { load }) => sum + load.seen, 0);
}

function countUnderWay({ meanUnderWay }: QueueOutcome): number {
  return meanUnderWay.reduce((sum, mean) => sum + mean, 0);
}

/** Returns the trial of a rate at which requests pile up, or more are under way than the samples show. */
function toUnseen(rate: number): Trial {
  const brokenBy = { strict: 'observed load', asked: 'observed load', lenient: 'observed load' } as const;
  return { rate, outcome: undefined, isUnseen: true, strictUse: 1, brokenBy };
}

export function tryRate(
  pool: QueuePool,
  limits: LatencyLimits,
  { rate, ...size }: RunSize & { readonly rate: number },
): Trial {
  const outcome = simulateRuns(pool, rate, size);
  if (outcome === undefined) return toUnseen(rate);
  const isUnseen = pool.servers.some(({ load }, i) => outcome.meanUnderWay[i]! > load.seen);
  const unseen = isUnseen ? 'observed load' : undefined;
  const useAt = (error: number) =>
    measureUse(outcome, { ...limits, quantile: limits.quantile + error * (1 - limits.quantile) });
  const strict = useAt(SHARE_ERROR);
  return {
    rate,
    outcome,
    isUnseen,
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
  // Answers of one token have no TPOT that could break a limit.
  const tpot = tpotMs.length === 0 ? 0 : quantileOf(tpotMs, quantile) / tpotLimitMs;
  return { ttft: quantileOf(ttftMs, quantile) / ttftLimitMs, tpot };
}

function findBroken({ ttft, tpot }: Use): LimitedBy | undefined {
  if (ttft > 1) return 'ttft';
  return tpot > 1 ? 'tpot' : undefined;
}

/** Simulates several runs and joins their requests. */
function simulateRuns(
  pool: QueuePool,
  requestsPerSecond: number,
  { runs, requests }: RunSize,
): QueueOutcome | undefined {
  const outcomes: QueueOutcome[] = [];
  for (let run = 1; run <= runs; run++) {
    const outcome = simulateQueue(pool, { requestsPerSecond, requests, random: createRandom(run) });
    if (outcome === undefined) return undefined;
    outcomes.push(outcome);
  }
  const meanOf = (read: (outcome: QueueOutcome) => readonly number[]) =>
    pool.servers.map((_, i) => outcomes.reduce((sum, outcome) => sum + read(outcome)[i]!, 0) / runs);
  return {
    ttftMs: joinSorted(outcomes.map(({ ttftMs }) => ttftMs)),
    tpotMs: joinSorted(outcomes.map(({ tpotMs }) => tpotMs)),
    meanUnderWay: meanOf(({ meanUnderWay }) => meanUnderWay),
    shares: meanOf(({ shares }) => shares),
  };
}

function joinSorted(parts: readonly Float64Array[]): Float64Array {
  if (parts.length === 1) return parts[0]!;
  const all = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let end = 0;
  for (const part of parts) {
    all.set(part, end);
    end += part.length;
  }
  return all.sort();
}

/** Answers of one token take no time after the first token. */
function meanStaySeconds({ ttftMs, tpotMs }: QueueOutcome, outputTokens: number): number {
  const mean = (times: Float64Array) => times.reduce((sum, ms) => sum + ms, 0) / Math.max(1, times.length);
  return (mean(ttftMs) + outputTokens * mean(tpotMs)) / 1000;
}

export function quantileOf(sorted: Float64Array, quantile: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))] ?? Number.NaN;
}
