/**
 * The distribution of the observed time around the mixture of the experts, from which every statistic is computed: first as
 * measured in training, then by the slot's own residuals once there are enough, corrected for each server.
 */
import { type Calibration, findBucket, SHIFT_OF } from '../../model/calibration.ts';
import type { PredictionTarget } from '../../schema/observation-table.ts';
import { type AdaptiveQuantiles, createAdaptiveQuantiles, QUANTILE_LEVELS } from './conformal.ts';
import { type IntervalScale, measureScale, type QuantileTable } from './interval-scale.ts';
import {
  fillStatistic,
  type IntervalState,
  MEDIAN,
  type MixedRows,
  medianFactor,
  type PredictedInterval,
  quantileShift,
  type StatisticColumn,
} from './interval-statistics.ts';
import { createRollingMaximum, type RollingMaximum } from './rolling-maximum.ts';
import { createServerQuantiles, type ServerQuantiles } from './server-quantiles.ts';

export interface PredictionIntervals {
  readonly ofSlot: AdaptiveQuantiles;
  readonly ofServers: ServerQuantiles;
  /** Of log(observed / predicted), and of observed - predicted in milliseconds. */
  readonly rollingMaximum: RollingMaximum;
  readonly excessMaximum: RollingMaximum;
  /**
   * How many observations of other requests come between a prediction and its own observation: a mean that each event
   * decays by `FEEDBACK_DELAY_DECAY` (delayed feedback).
   */
  feedbackDelay: number;
  /** Writes the statistic of each row. */
  fill(mixed: MixedRows, column: StatisticColumn): void;
  /** No quantile above the median is below `leastMs`. */
  predictInterval(mixtureMs: number, server: number, leastMs?: number): PredictedInterval;
  /** `logRatio` is the logarithm of the observed time over the mixture. */
  observe(interval: PredictedInterval, server: number, logRatio: number): void;
  replaceCalibration(calibration: Calibration): void;
}

/** A larger lasting bias is corrected by offsets; at a load without samples, the spread alone could shift a median by a factor of e. */
const MAX_MEDIAN_SHIFT = 0.05;
/** With this feedback delay the median is shifted by half of that at most. */
const HALF_FEEDBACK_DELAY = 3;
export const FEEDBACK_DELAY_DECAY = 0.98;
/**
 * A short time is now and then many times as long as predicted, and a long one is not. So in milliseconds a quantile exceeds
 * its prediction by at most this many times the largest recent excess, whatever the load.
 */
const EXCESS_MARGIN = 2;

/**
 * The learned quantiles know loads that have not come lately. They count as this share of a full window of residuals,
 * fewer the fuller the window is.
 */
const LEARNED_SHARE = 1 / 15;

/** Of each bucket, between the learned quantiles and the recent ones. A guess that was learned from no rows counts nothing. */
function blendQuantiles(learned: IntervalScale, recent: Float64Array, evidence: number): QuantileTable {
  if (evidence >= 1 || learned.rows === 0) return { quantiles: recent, stride: 0 };
  const share = evidence / (evidence + LEARNED_SHARE * (1 - evidence));
  const quantiles = new Float64Array(learned.quantiles.length);
  // A loop: this runs for every call and every report, and `map` costs many times as much.
  for (let i = 0; i < quantiles.length; i++) {
    const quantile = learned.quantiles[i]!;
    quantiles[i] = quantile + share * (recent[i % QUANTILE_LEVELS.length]! - quantile);
  }
  return { quantiles, stride: QUANTILE_LEVELS.length };
}

/** A median that follows delayed feedback oscillates: the longer the delay, the less it may follow. */
function limitMedianShift(feedbackDelay: number): number {
  return MAX_MEDIAN_SHIFT / (1 + feedbackDelay / HALF_FEEDBACK_DELAY);
}

interface PredictedTime {
  readonly mixtureMs: number;
  /** The scale at the load of the request. */
  readonly spread: number;
  /** The corrections of its server. */
  readonly corrections: Float64Array;
  readonly leastMs: number;
}

/** In units of the spread: one for each of `QUANTILE_LEVELS`. */
function predictQuantiles(state: IntervalState, { mixtureMs, spread, corrections, leastMs }: PredictedTime): number[] {
  const least = Math.log(Math.max(medianFactor(state, corrections), leastMs / mixtureMs));
  return QUANTILE_LEVELS.map((_, level) => {
    if (level === MEDIAN) return ((state.quantiles[MEDIAN]! + corrections[MEDIAN]!) * state.typicalSpread) / spread;
    return Math.max(least, quantileShift({ ...state, level }, corrections, mixtureMs)) / spread;
  });
}

export function createPredictionIntervals(target: PredictionTarget, calibration: Calibration): PredictionIntervals {
  const ofSlot = createAdaptiveQuantiles(() => feedbackDelay);
  const ofServers = createServerQuantiles();
  const rollingMaximum = createRollingMaximum();
  const excessMaximum = createRollingMaximum();
  let scale = measureScale(calibration);
  let feedbackDelay = 0;

  /** Recent residuals of the slot have one quantile for every load; learned ones have one for each bucket. */
  function readState(): IntervalState {
    const recent = ofSlot.quantiles();
    const blended = recent === undefined ? undefined : blendQuantiles(scale, recent, ofSlot.evidence);
    const lowerQuantile = ofSlot.lowerQuantile();
    return {
      ...scale,
      ...blended,
      lowerQuantile,
      learnedQuantiles: scale.quantiles,
      maxShift: rollingMaximum.value,
      maxExcessMs: EXCESS_MARGIN * excessMaximum.value,
      findShift: SHIFT_OF[target],
      ofServers,
      maxMedianShift: limitMedianShift(feedbackDelay),
    };
  }

  return {
    ofSlot,
    ofServers,
    rollingMaximum,
    excessMaximum,
    get feedbackDelay() {
      return feedbackDelay;
    },
    set feedbackDelay(mean) {
      feedbackDelay = mean;
    },
    fill: (mixed, column) => fillStatistic(readState(), mixed, column),
    predictInterval(mixtureMs, server, leastMs = 0) {
      const state = readState();
      const spread = scale.spreads[findBucket(scale.edges, mixtureMs)]!;
      const corrections = ofServers.correctionsOf(server);
      const quantiles = predictQuantiles(state, { mixtureMs, spread, corrections, leastMs });
      const before = { observedBefore: ofSlot.count, observedOfServerBefore: ofServers.countOf(server) };
      return { mixtureMs, spread, quantiles, maxMedianShift: state.maxMedianShift, ...before };
    },
    observe({ mixtureMs, spread, quantiles, observedBefore, observedOfServerBefore }, server, logRatio) {
      rollingMaximum.observe(logRatio);
      excessMaximum.observe(mixtureMs * Math.expm1(logRatio));
      const residual = logRatio / spread;
      const since = ofSlot.count - observedBefore;
      feedbackDelay = FEEDBACK_DELAY_DECAY * feedbackDelay + (1 - FEEDBACK_DELAY_DECAY) * since;
      ofSlot.observe(residual, quantiles, since);
      ofServers.observe(server, residual, quantiles, ofServers.countOf(server) - observedOfServerBefore);
    },
    replaceCalibration(next) {
      scale = measureScale(next);
    },
  };
}
