/**
 * Measures in training how far observed times are from predicted ones on held-out rows (split-conformal quantiles). The distances
 * are logarithms, in buckets of predicted times, since errors depend on the load.
 */

import type { AnswerStatistic } from '../schema/columns.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';

export const LEVELS = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99] as const;

export interface Calibration {
  /** Rising predicted times (ms) that separate the buckets; one fewer than buckets. */
  readonly edges: Float64Array;
  /** Bucket after bucket, one residual log(observed / predicted) for each level. */
  readonly quantiles: Float64Array;
  /** The logarithm of the mean of observed / predicted, for each bucket. */
  readonly logMeans: Float64Array;
  /** How many residuals it was measured from. */
  readonly rows: number;
}

/** The statistics that a model may answer with. p10 is only returned as a lower bound, together with one of them. */
export type Statistic = Exclude<AnswerStatistic, 'p10'>;
export const STATISTICS: readonly Statistic[] = ['p50', 'mean', 'p90', 'p95', 'p99'];
const LEVEL_OF = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 } as const;

const ROWS_PER_BUCKET = 120;
const MAX_BUCKETS = 8;
/** The spread of a prior, as a logarithm, before anything is measured: it can be wrong by a factor of two or three. */
const UNKNOWN_SPREAD = 0.8;

export function unknownCalibration(): Calibration {
  return {
    edges: new Float64Array(0),
    quantiles: Float64Array.from(LEVELS, (level) => UNKNOWN_SPREAD * normalQuantile(level)),
    logMeans: Float64Array.of(UNKNOWN_SPREAD ** 2 / 2),
    rows: 0,
  };
}

/** The calibration of imported trees whose predictions are means, and need no factor. */
export function calibrationOfMeans(): Calibration {
  return { ...unknownCalibration(), logMeans: Float64Array.of(0) };
}

export function calibrate(predicted: Float64Array, observed: Float64Array): Calibration {
  const count = predicted.length;
  if (count === 0) return unknownCalibration();
  const order = Float64Array.from(predicted).sort();
  const buckets = Math.max(1, Math.min(MAX_BUCKETS, Math.floor(count / ROWS_PER_BUCKET)));
  const edges = new Float64Array(buckets - 1);
  for (let b = 1; b < buckets; b++) edges[b - 1] = order[Math.floor((b * count) / buckets)]!;
  const residuals: number[][] = Array.from({ length: buckets }, () => []);
  for (let i = 0; i < count; i++)
    residuals[findBucket(edges, predicted[i]!)]!.push(Math.log(observed[i]! / predicted[i]!));
  // Equal predictions can leave a bucket empty: it takes the residuals of all.
  const all = residuals.flat();
  const known = residuals.map((bucket) => Float64Array.from(bucket.length > 0 ? bucket : all).sort());
  return {
    edges,
    quantiles: Float64Array.from(known.flatMap((sorted) => LEVELS.map((level) => extendQuantile(sorted, level)))),
    logMeans: Float64Array.from(known, (sorted) => logMeanRatio(sorted)),
    rows: count,
  };
}

/**
 * Returns the residual at a level. n residuals reach the levels from 1/(n+1) to n/(n+1); beyond the outermost residual, the
 * quantile is extrapolated as that of a normal distribution.
 */
function extendQuantile(sorted: Float64Array, level: number): number {
  const lowest = 1 / (sorted.length + 1);
  const reached = Math.max(lowest, Math.min(1 - lowest, level));
  const beyond = normalQuantile(level) - normalQuantile(reached);
  return conformalQuantile(sorted, reached) + estimateSpread(sorted) * beyond;
}

/** The spread of the prior counts as much as this many residuals. */
const PRIOR_RESIDUALS = 5;

/** The standard deviation of residuals, pooled with that of the prior: one residual hardly changes the prior's, and many outweigh it. */
function estimateSpread(residuals: Float64Array): number {
  const middle = median(residuals);
  const squares = residuals.reduce((sum, residual) => sum + (residual - middle) ** 2, 0);
  const variance = (PRIOR_RESIDUALS * UNKNOWN_SPREAD ** 2 + squares) / (PRIOR_RESIDUALS + residuals.length);
  return Math.min(UNKNOWN_SPREAD, Math.sqrt(variance));
}

/**
 * Returns the residual that at least the share `level` of new rows stays below: the ⌈(n+1)·level⌉-th smallest (Vovk et al. 2005).
 * If n is too small for the level, it is the outermost residual, which covers too few rows.
 */
export function conformalQuantile(sorted: Float64Array, level: number): number {
  // Below the middle, the guarantee is for the share above the residual.
  const rank = level >= 0.5 ? Math.ceil((sorted.length + 1) * level) : Math.floor((sorted.length + 1) * level);
  if (level === 0.5) return median(sorted);
  return sorted[Math.max(0, Math.min(sorted.length, rank) - 1)]!;
}

export function median(sorted: Float64Array): number {
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function findBucket(edges: Float64Array, predicted: number): number {
  let bucket = 0;
  while (bucket < edges.length && predicted >= edges[bucket]!) bucket++;
  return bucket;
}

/** Returns what to add to the logarithm of a prediction to answer with this statistic. The prediction itself is the median. */
export function statisticOffset(
  { edges, logMeans, quantiles }: Calibration,
  { target, statistic }: { readonly target: PredictionTarget; readonly statistic: Statistic },
  predicted: number,
): number {
  if (statistic === 'p50') return 0;
  const findShift = SHIFT_OF[target];
  const buckets = describeBuckets(edges);
  if (statistic === 'mean') return findShift(buckets, predicted, (bucket) => logMeans[bucket]!);
  const level = LEVELS.indexOf(LEVEL_OF[statistic]);
  // A high quantile is never below the median, which is the prediction itself.
  return findShift(buckets, predicted, (bucket) => Math.max(0, quantiles[bucket * LEVELS.length + level]!));
}

export interface Buckets {
  /** Rising predicted times (ms) that separate the buckets. */
  readonly edges: Float64Array;
  readonly logEdges: Float64Array;
}

/** Callers keep the result: the logarithms of the edges cost more than everything else that a row needs. */
export function describeBuckets(edges: Float64Array): Buckets {
  return { edges, logEdges: edges.map(Math.log) };
}

/** How far a time is shifted, as a logarithm, when each bucket has a shift of its own. */
type FindShift = (buckets: Buckets, ms: number, readShift: (bucket: number) => number) => number;

/** Candidates are compared by their TTFT, so its statistics must not fall where the next bucket begins. */
export const SHIFT_OF: Readonly<Record<PredictionTarget, FindShift>> = {
  ttft: (buckets, ms, readShift) => smoothShift(buckets, ms, readShift),
  tpot: ({ edges }, ms, readShift) => readShift(findBucket(edges, ms)),
};

/**
 * The shift of a bucket, such that a longer time never has a smaller statistic: where the next bucket has a smaller shift, the
 * last statistics of this bucket are lowered and the first ones of the next are raised, each by half of the gap.
 */
function smoothShift({ edges, logEdges }: Buckets, ms: number, readShift: (bucket: number) => number): number {
  const bucket = findBucket(edges, ms);
  const logMs = Math.log(ms);
  let highest = readShift(bucket);
  let lowest = highest;
  for (let lower = 0; lower < bucket; lower++) highest = Math.max(highest, readShift(lower) + logEdges[lower]! - logMs);
  for (let upper = bucket + 1; upper <= edges.length; upper++)
    lowest = Math.min(lowest, readShift(upper) + logEdges[upper - 1]! - logMs);
  return (highest + lowest) / 2;
}

/** One extreme ratio must not decide a mean. */
const MAX_LOG_RATIO = 4;

/** The logarithm of the mean of observed / predicted. `spread` is the unit of the residuals. */
export function logMeanRatio(residuals: Float64Array, spread = 1): number {
  let sum = 0;
  for (const residual of residuals) sum += Math.exp(Math.min(MAX_LOG_RATIO, residual * spread));
  return Math.log(sum / residuals.length);
}

/** Quantile of the standard normal distribution (Abramowitz & Stegun 26.2.23, |error| < 4.5e-4). */
function normalQuantile(level: number): number {
  if (level === 0.5) return 0;
  const t = Math.sqrt(-2 * Math.log(Math.min(level, 1 - level)));
  const z =
    t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t ** 3);
  return level < 0.5 ? -z : z;
}
