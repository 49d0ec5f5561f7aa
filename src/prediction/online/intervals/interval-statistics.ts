/**
 * Turns the mixture of each row into one statistic: mean, median, p10, p90, p95 or p99. The mixture is the weighted mean of the
 * experts' predictions (`../expert-weights.ts`). All functions are pure loops over arrays.
 */
import type { SHIFT_OF } from '../../model/calibration.ts';
import type { AnswerStatistic } from '../../schema/columns.ts';
import { clampMs } from '../../schema/milliseconds.ts';
import type { PredictionTarget } from '../../schema/observation-table.ts';
import { MEDIAN, QUANTILE_LEVELS } from './conformal.ts';
import type { IntervalScale } from './interval-scale.ts';
import type { PredictedBlend } from './learned-corrections.ts';
import type { ServerQuantiles } from './server-quantiles.ts';

/** The statistic of each of `QUANTILE_LEVELS`. */
const STATISTIC_OF: readonly AnswerStatistic[] = ['p50', 'p90', 'p95', 'p99'];

/** The statistics of a slot are computed from this: its scale, with quantiles that may be blended with those of recent residuals. */
export interface IntervalState extends IntervalScale {
  /** The quantiles of the scale as the training measured them, one for each bucket and level. */
  readonly learnedQuantiles: Float64Array;
  /** The logarithm of the mean of observed / predicted, for each bucket. */
  readonly readLogMeans: () => Float64Array;
  readonly findShift: (typeof SHIFT_OF)[PredictionTarget];
  /** The largest shift of a quantile: log(quantile / prediction). */
  readonly maxShift: number;
  /** A quantile exceeds its prediction by at most this, or by the learned quantile if that is more. */
  readonly maxExcessMs: number;
  /** The p10 of the slot's recent residuals, in units of the spread; undefined while they are few. */
  readonly lowerQuantile: number | undefined;
  readonly ofServers: ServerQuantiles;
  /** The median is shifted by this logarithm at most. */
  readonly maxMedianShift: number;
}

/** A statistic, and the array that its times are written to, by the positions of the rows in the call. */
export interface StatisticColumn {
  readonly statistic: AnswerStatistic;
  readonly timesMs: Float64Array;
}

/** Rows of a call with their servers and mixtures, in the same order. */
export interface MixedRows {
  readonly count: number;
  /** Positions among all rows of the call. */
  readonly rows: Int32Array;
  /** The number of each row's server, -1 for an unknown server. */
  readonly servers: Int32Array;
  readonly mixtureMs: Float64Array;
  /** No quantile above the median is below this, by the positions of the rows in the call. */
  readonly leastMs?: Float64Array | undefined;
}

export function fillStatistic(state: IntervalState, mixed: MixedRows, { statistic, timesMs }: StatisticColumn): void {
  const level = STATISTIC_OF.indexOf(statistic);
  if (statistic === 'mean') fillMeans(state, mixed, timesMs);
  else if (statistic === 'p10') fillLowerBounds(state, mixed, timesMs);
  else if (level === MEDIAN) fillMedians(state, mixed, timesMs);
  else {
    fillQuantiles({ ...state, level }, mixed, timesMs);
    if (mixed.leastMs !== undefined) raiseToLeast(mixed, mixed.leastMs, timesMs);
  }
}

/**
 * Shifts the median of a server by the same factor at every load, so that two of its rows never change order; the training shift
 * is 0 at each load.
 */
function fillMedians(
  state: IntervalState,
  { count, rows, servers, mixtureMs }: MixedRows,
  timesMs: Float64Array,
): void {
  const { ofServers } = state;
  for (let n = 0; n < count; n++)
    timesMs[rows[n]!] = clampMs(mixtureMs[n]! * medianFactor(state, ofServers.correctionsOf(servers[n]!)));
}

function fillQuantiles(
  state: LeveledState,
  { count, rows, servers, mixtureMs }: MixedRows,
  timesMs: Float64Array,
): void {
  const { ofServers } = state;
  for (let n = 0; n < count; n++) {
    const corrections = ofServers.correctionsOf(servers[n]!);
    const factor = Math.exp(quantileShift(state, corrections, mixtureMs[n]!));
    // The median moves slowly. If all observed times were far below it, the upper quantiles would fall below it too.
    timesMs[rows[n]!] = clampMs(mixtureMs[n]! * Math.max(factor, medianFactor(state, corrections)));
  }
}

function raiseToLeast({ count, rows }: MixedRows, leastMs: Float64Array, timesMs: Float64Array): void {
  for (let n = 0; n < count; n++) {
    const row = rows[n]!;
    if (leastMs[row]! > timesMs[row]!) timesMs[row] = leastMs[row]!;
  }
}

/** Fills p10 values that are never above the median. The p10 is that of the slot, without a correction for the server. */
function fillLowerBounds(
  state: IntervalState,
  { count, rows, servers, mixtureMs }: MixedRows,
  timesMs: Float64Array,
): void {
  const { spreads, lowerQuantile, lowerQuantiles, ofServers } = state;
  const readShift = (bucket: number): number => (lowerQuantile ?? lowerQuantiles[bucket]!) * spreads[bucket]!;
  for (let n = 0; n < count; n++) {
    const factor = Math.exp(state.findShift(state, mixtureMs[n]!, readShift));
    const median = medianFactor(state, ofServers.correctionsOf(servers[n]!));
    timesMs[rows[n]!] = clampMs(mixtureMs[n]! * Math.min(factor, median));
  }
}

function fillMeans(state: IntervalState, { count, rows, mixtureMs }: MixedRows, timesMs: Float64Array): void {
  const logMeans = state.readLogMeans();
  const readShift = (bucket: number): number => logMeans[bucket]!;
  for (let n = 0; n < count; n++)
    timesMs[rows[n]!] = clampMs(mixtureMs[n]! * Math.exp(state.findShift(state, mixtureMs[n]!, readShift)));
}

interface LeveledState extends IntervalState {
  /** A position in `QUANTILE_LEVELS`. */
  readonly level: number;
}

/** Steps 6 and 7 of `prediction-intervals.ts`: log(quantile / mixture). */
export function quantileShift(state: LeveledState, corrections: Float64Array, ms: number): number {
  const { spreads, maxShift, maxExcessMs } = state;
  const shift = state.findShift(state, ms, (bucket) =>
    Math.min(maxShift, correctQuantile(state, bucket, corrections) * spreads[bucket]!),
  );
  const excess = maxExcessMs / ms;
  // log(1 + x) is at least 2x / (2 + x), which costs less: this runs for every row of a call.
  if (shift * (2 + excess) <= 2 * excess) return shift;
  const limit = Math.log(1 + excess);
  return shift <= limit ? shift : Math.min(shift, Math.max(limit, learnedShift(state, ms)));
}

function learnedShift(state: LeveledState, ms: number): number {
  const { spreads, learnedQuantiles, level } = state;
  return state.findShift(
    state,
    ms,
    (bucket) => learnedQuantiles[bucket * QUANTILE_LEVELS.length + level]! * spreads[bucket]!,
  );
}

/** Step 5: returns the corrected quantile in units of the spread, never below one of a lower level, so quantiles never cross. */
function correctQuantile(
  { quantiles, stride, level }: LeveledState,
  bucket: number,
  corrections: Float64Array,
): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (let p = 0; p <= level; p++) highest = Math.max(highest, quantiles[bucket * stride + p]! + corrections[p]!);
  return highest;
}

export function medianFactor(
  { quantiles, typicalSpread, maxMedianShift }: IntervalState,
  corrections: Float64Array,
): number {
  return boundedFactor((quantiles[MEDIAN]! + corrections[MEDIAN]!) * typicalSpread, maxMedianShift);
}

function boundedFactor(shift: number, limit: number): number {
  const small = Math.max(-limit, Math.min(limit, shift));
  // e^x to five digits, at a fraction of its cost: this runs for every row of a call.
  return 1 + small * (1 + small / 2);
}

/** The predicted distribution of the time of one request. */
export interface PredictedInterval extends PredictedBlend {
  readonly mixtureMs: number;
  /** The spread of the training's residuals at this load, a logarithm. */
  readonly spread: number;
  /** One quantile for each of `QUANTILE_LEVELS`, in units of the spread. */
  readonly quantiles: readonly number[];
  /** The quantiles of recent residuals alone, without floors and caps; the same as `quantiles` while residuals are few. */
  readonly recentQuantiles: readonly number[];
  /** The median is shifted by this logarithm at most. */
  readonly maxMedianShift: number;
  /** How many times were observed before it, in the slot and at the server. */
  readonly observedBefore: number;
  readonly observedOfServerBefore: number;
  /** How many of the times observed meanwhile were learned in earlier parts of the same report (`FeedbackDelays.reportDelay`). */
  readonly reportedMeanwhile?: number;
}

/**
 * Converts the interval of a request to the units of `renewed`, the interval of another model for it: each upper quantile stays
 * the same time in milliseconds. So a time misses the converted quantile exactly when it misses the old one, and its residual is
 * relative to the new model.
 */
export function translateInterval(old: PredictedInterval, renewed: PredictedInterval): PredictedInterval {
  const { mixtureMs, spread, learnedRoom, maxMedianShift } = renewed;
  const shift = Math.log(mixtureMs / old.mixtureMs);
  const move = (quantile: number): number => (quantile * old.spread - shift) / spread;
  const quantiles = old.quantiles.map(move);
  const recentQuantiles = old.recentQuantiles.map(move);
  return { ...old, mixtureMs, spread, learnedRoom, maxMedianShift, quantiles, recentQuantiles, floor: move(old.floor) };
}

/** A predicted quantile in milliseconds. */
export function quantileMs(statistic: 'p50' | 'p90', mixtureMs: number, interval: PredictedInterval): number {
  const level = STATISTIC_OF.indexOf(statistic);
  const shift = interval.quantiles[level]! * interval.spread;
  return clampMs(mixtureMs * (level === MEDIAN ? boundedFactor(shift, interval.maxMedianShift) : Math.exp(shift)));
}
