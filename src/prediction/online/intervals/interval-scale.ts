/** Computes one factor of an interval, the spread: how widely observed times scattered in training, in buckets of predicted times. */
import { type Buckets, type Calibration, describeBuckets, LEVELS, median } from '../../model/calibration.ts';
import { QUANTILE_LEVELS, type QuantileLevel } from './conformal.ts';

/** One quantile for each of `QUANTILE_LEVELS`, in units of the spread. Those of a bucket begin at its number × stride. */
export interface QuantileTable {
  readonly quantiles: Float64Array;
  readonly stride: number;
}

/** The spread and the quantiles of each bucket, as measured in training. */
export interface IntervalScale extends QuantileTable, Buckets {
  /** The spread of each bucket: half the distance between p10 and p90 of the residuals, a logarithm. */
  readonly spreads: Float64Array;
  readonly typicalSpread: number;
  /** The p10 of the residuals of each bucket, in units of the spread. */
  readonly lowerQuantiles: Float64Array;
  readonly logMeans: Float64Array;
  /** How many residuals the training measured this from; 0 for a guess. */
  readonly rows: number;
}

/** The smallest spread: a bucket has equal residuals only by chance. */
const MIN_SPREAD = 0.02;
const LOW = LEVELS.indexOf(0.1);
const HIGH = LEVELS.indexOf(0.9);

export function measureScale({ edges, quantiles, logMeans, rows }: Calibration): IntervalScale {
  const residual = (bucket: number, level: number): number => quantiles[bucket * LEVELS.length + level]!;
  const spreads = logMeans.map((_, bucket) =>
    Math.max(MIN_SPREAD, (residual(bucket, HIGH) - residual(bucket, LOW)) / 2),
  );
  // The model predicts the median itself, so its quantile is 0.
  const inSpreads = (bucket: number, level: QuantileLevel): number =>
    level === 0.5 ? 0 : residual(bucket, LEVELS.indexOf(level)) / spreads[bucket]!;
  const byBucket = Array.from(spreads, (_, bucket) => QUANTILE_LEVELS.map((level) => inSpreads(bucket, level)));
  return {
    ...describeBuckets(edges),
    spreads,
    typicalSpread: median(spreads.toSorted()),
    lowerQuantiles: spreads.map((spread, bucket) => residual(bucket, LOW) / spread),
    logMeans,
    rows,
    quantiles: Float64Array.from(byBucket.flat()),
    stride: QUANTILE_LEVELS.length,
  };
}

/**
 * Quantiles measured in training include loads that have not occurred lately. In a blend they count as much as this share of a
 * full window of recent residuals, and less the fuller the window is.
 */
const LEARNED_SHARE = 1 / 5;

/** `AdaptiveQuantiles.evidence` of recent residuals. */
interface Evidence {
  readonly evidence: number;
}

/** Without training rows only the recent residuals count. */
export function isBlended({ rows }: IntervalScale, { evidence }: Evidence): boolean {
  return evidence < 1 && rows > 0;
}

/** The weight of the recent residuals in a blend with what the training measured. */
export function shareOfRecent(learned: IntervalScale, recent: Evidence): number {
  const { evidence } = recent;
  return isBlended(learned, recent) ? evidence / (evidence + LEARNED_SHARE * (1 - evidence)) : 1;
}
