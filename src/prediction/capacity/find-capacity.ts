/**
 * Describes the capacity of a pool: the highest rate within its limits, what prevents a higher one, and latencies by rate.
 * `search-rates.ts` finds the rate.
 */
import { Failure } from '../../errors.ts';
import {
  type Break,
  createSearch,
  type LatencyLimits,
  type LimitedBy,
  LOWEST_RATE,
  quantileOf,
  type Strictness,
  sizeRuns,
  type Trial,
  tryRate,
} from './search-rates.ts';
import type { QueueOutcome, QueuePool } from './simulate-queue.ts';

export interface Capacity {
  readonly requestsPerSecond: number;
  /** The mean number of requests under way in the whole pool at that rate. */
  readonly concurrency: number;
  /**
   * Says what prevents a higher rate: a limit that breaks, or the highest load in the samples. With `observed load` the capacity may
   * be higher, but no sample shows what requests cost at higher loads.
   */
  readonly limitedBy: LimitedBy;
  /** Present where the quantile stays near the limit over many rates, so that the limit breaks somewhere in this range. */
  readonly plateau: Plateau | undefined;
  /** The latencies at that rate, at the quantile of the limits. */
  readonly ttftMs: number;
  /** Undefined for answers of one token, which have no TPOT. */
  readonly tpotMs: number | undefined;
  readonly servers: readonly ServerCapacity[];
  /** Latencies at the quantile of the limits, rising by rate, from an idle pool to above the capacity. */
  readonly curve: readonly CurvePoint[];
}

export interface CurvePoint {
  readonly requestsPerSecond: number;
  readonly ttftMs: number;
  /** Undefined for answers of one token. */
  readonly tpotMs: number | undefined;
  /** True if more requests are under way than in any sample: the latencies are then extrapolated from lower loads. */
  readonly isExtrapolated: boolean;
}

export interface Plateau {
  readonly fromRequestsPerSecond: number;
  readonly toRequestsPerSecond: number;
}

export interface ServerCapacity {
  readonly name: string;
  readonly requestsPerSecond: number;
  readonly concurrency: number;
}

/** A range of rates wider than this factor is reported as a range, since no rate in it is certain to 15 %. */
const PLATEAU = 1.15;
/** Rates of the curve as shares of the capacity, in addition to those that the search tries. */
const CURVE_SHARES = [0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.04, 1.1, 1.2, 1.3];

/**
 * Returns undefined if even an idle pool breaks a limit. Throws if the limits hold only at loads below those of the samples,
 * where nothing is known.
 */
export function findCapacity(pool: QueuePool, limits: LatencyLimits): Capacity | undefined {
  checkLoadMet(pool);
  const idle = tryRate(pool, limits, { rate: LOWEST_RATE, ...sizeRuns(pool, 1, 0) });
  const brokenIdle = idle.brokenBy.asked;
  if (brokenIdle === 'observed load') throw refuseEndless();
  if (brokenIdle !== undefined) {
    const idleLoad = pool.servers.map(() => IDLE_UNDER_WAY);
    if (!isBrokenIdle(pool, idle, limits)) checkLoadSeen(pool, idleLoad, brokenIdle);
    return undefined;
  }
  const search = createSearch(pool, limits, idle);
  const found = findBreaks(search);
  checkLoadSeen(pool, found.good.outcome!.meanUnderWay, found.limitedBy);
  for (const share of CURVE_SHARES) search.attempt(share * found.good.rate, 1);
  return {
    ...describe(pool, { ...found, quantile: limits.quantile }),
    curve: drawCurve(search.listTried(), found, limits),
  };
}

interface Found extends Break {
  readonly plateau: Plateau | undefined;
}

function findBreaks(search: ReturnType<typeof createSearch>): Found {
  const strict = search.findBreak(({ brokenBy }) => brokenBy.strict);
  const asked = search.findBreak(({ brokenBy }) => brokenBy.asked);
  return describeRange({ strict, asked, lenient: search.findBreak(({ brokenBy }) => brokenBy.lenient) });
}

/**
 * In a heterogeneous pool a quantile may hardly change over a wide range of rates, because the slowest server gets about the
 * share of requests that the quantile leaves out. The capacity then depends on a percent of that share, and is somewhere in
 * the range.
 */
function describeRange({ strict, asked, lenient }: Readonly<Record<Strictness, Break>>): Found {
  const [from, to] = [strict.good.rate, lenient.good.rate];
  if (to <= PLATEAU * from) return { ...asked, plateau: undefined };
  const plateau = { fromRequestsPerSecond: from <= LOWEST_RATE ? 0 : from, toRequestsPerSecond: to };
  return { ...asked, limitedBy: strict.limitedBy, plateau };
}

/** The samples include an idle server if some met at most this many requests. */
const IDLE_UNDER_WAY = 2;

/** Serving n + 1 requests together is never slower than one after the other, so an idle server is at most n + 1 times as fast. */
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

function checkLoadSeen(
  { servers }: Pick<QueuePool, 'servers'>,
  meanUnderWay: readonly number[],
  limitedBy: LimitedBy,
): void {
  const unseen = servers.find(({ load }, i) => meanUnderWay[i]! < load.lowest);
  if (unseen === undefined) return;
  throw new Failure(
    'invalid',
    `Cannot find the capacity: the limits hold at most below the loads that the samples show (server "${unseen.name}" hardly ever had fewer than ${unseen.load.lowest} requests under way); observe the servers at lower rates too`,
    { field: limitedBy === 'observed load' ? 'servers' : `${limitedBy}_ms` },
  );
}

/** Throws if the samples of a server never met another request, because they then show no load. */
function checkLoadMet({ servers }: Pick<QueuePool, 'servers'>): void {
  const idle = servers.find(({ load }) => load.seen === 0);
  if (idle === undefined) return;
  throw new Failure(
    'invalid',
    `Cannot find the capacity: almost no request at the server "${idle.name}" found another one there (num_request_waiting + num_request_running is 0); observe the servers at higher rates too`,
    { field: 'servers' },
  );
}

/** Refuses answers so long that even one request in days is too much for the servers. */
function refuseEndless(): Failure {
  return new Failure(
    'invalid',
    'Cannot find the capacity: answers of so many tokens take so long that the servers are busy at every rate; output_tokens must be smaller',
    { field: 'output_tokens' },
  );
}

/** Leaves out rates at which requests pile up without end: they have no latency. */
function drawCurve(tried: readonly Trial[], { good }: Found, { quantile }: LatencyLimits): CurvePoint[] {
  const highest = CURVE_SHARES.at(-1)! * good.rate;
  const shown = tried.flatMap(({ rate, outcome, isUnseen }) =>
    outcome === undefined || rate > highest ? [] : [{ rate, outcome, isUnseen }],
  );
  const weights = shown.map(({ outcome }) => outcome.ttftMs.length);
  const ttfts = makeRising(
    shown.map(({ outcome }) => quantileOf(outcome.ttftMs, quantile)),
    weights,
  );
  const hasTpot = shown.every(({ outcome }) => outcome.tpotMs.length > 0);
  const tpots = hasTpot
    ? makeRising(
        shown.map(({ outcome }) => quantileOf(outcome.tpotMs, quantile)),
        weights,
      )
    : [];
  return shown.map(({ rate, isUnseen }, i) => ({
    requestsPerSecond: rate === LOWEST_RATE ? 0 : rate,
    ttftMs: ttfts[i]!,
    tpotMs: tpots[i],
    isExtrapolated: isUnseen,
  }));
}

/**
 * More requests never make latencies shorter. Where the quantile of one rate is by chance above that of the next, both get their
 * mean, weighted by the requests that were measured (isotonic regression, Ayer et al. 1955).
 */
export function makeRising(values: readonly number[], weights: readonly number[]): number[] {
  const blocks: { value: number; weight: number; length: number }[] = [];
  for (const [i, value] of values.entries()) {
    let block = { value, weight: weights[i]!, length: 1 };
    for (let before = blocks.at(-1); before !== undefined && before.value > block.value; before = blocks.at(-1)) {
      const weight = before.weight + block.weight;
      const mean = (before.value * before.weight + block.value * block.weight) / weight;
      block = { value: mean, weight, length: before.length + block.length };
      blocks.pop();
    }
    blocks.push(block);
  }
  return blocks.flatMap(({ value, length }) => Array.from({ length }, () => value));
}

function tpotAt({ tpotMs }: QueueOutcome, quantile: number): number | undefined {
  return tpotMs.length === 0 ? undefined : quantileOf(tpotMs, quantile);
}

function describe({ servers }: QueuePool, found: Found & { readonly quantile: number }): Omit<Capacity, 'curve'> {
  const { rate, outcome } = found.good;
  const { meanUnderWay, shares, ttftMs } = outcome!;
  return {
    requestsPerSecond: rate,
    concurrency: meanUnderWay.reduce((sum, mean) => sum + mean, 0),
    limitedBy: found.limitedBy,
    plateau: found.plateau,
    ttftMs: quantileOf(ttftMs, found.quantile),
    tpotMs: tpotAt(outcome!, found.quantile),
    servers: servers.map(({ name }, i) => ({
      name,
      requestsPerSecond: rate * shares[i]!,
      concurrency: meanUnderWay[i]!,
    })),
  };
}
