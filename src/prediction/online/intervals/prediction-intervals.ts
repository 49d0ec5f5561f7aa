/**
 * Computes the interval around a prediction, step by step: first the spread, then the quantiles (p10, median, p90, p95, p99) and
 * the mean. The p90 of a prediction of m milliseconds is computed in these steps (p95 and p99 likewise):
 *   1. Spread. m falls into a bucket of predicted times. On held-out rows the training measured the spread of the bucket, half the
 *      distance between the p10 and the p90 of its residuals log(observed / predicted) (`interval-scale.ts`).
 *   2. Learned quantile: the p90 of the same residuals, divided by the spread.
 *   3. Recent quantile: the p90 of the slot's newest scaled residuals, each divided by the spread at its own load. It is taken
 *      at a level that moves around 0.9 with the misses, and a slow correction is added (`conformal.ts`). While residuals are few,
 *      2 is used alone.
 *   4. Blend of 2 and 3: the more residuals, the more the recent one counts (`blendQuantiles`). A correction pulls 2 towards 3
 *      (`learned-corrections.ts`).
 *   5. The correction of the server is added (`server-quantiles.ts`). If a lower level has a larger quantile, that is used.
 *   6. Times the spread of 1, this is the shift, a logarithm, and at most the largest recent residual (`rolling-maximum.ts`).
 *      Between the buckets of TTFT it is smoothed, so that a longer prediction never has a smaller p90 (`SHIFT_OF`).
 *   7. m · e^shift exceeds m by at most twice the largest recent excess in milliseconds, or by what the learned quantile (step 2)
 *      gives if that is more.
 *   8. The p90 is at least the median, and at least the bound of a stalled queue (`../stalled-queue/`).
 * When the time is known, `observe` adds its residual to the windows of steps 3, 6 and 7. The level and correction of step 3
 * react to misses of the recent quantile plus the server's correction, before the limits of steps 6 to 8. Otherwise a time
 * covered only by a floor would lower them. The corrections of steps 4 and 5 react to misses of the final quantile.
 * The median takes steps 3 to 5 with the learned quantile 0, and a narrow limit (`limitMedianShift`). The mean is m times a blend
 * as in step 4 (`log-means.ts`).
 */
import { type Calibration, findBucket, SHIFT_OF } from '../../model/calibration.ts';
import type { PredictionTarget } from '../../schema/observation-table.ts';
import { type AdaptiveQuantiles, createAdaptiveQuantiles, MEDIAN, QUANTILE_LEVELS } from './conformal.ts';
import type { DatedState, ServerState, SlotState } from './dated-state.ts';
import { type IntervalScale, isBlended, measureScale, type QuantileTable, shareOfRecent } from './interval-scale.ts';
import {
  fillStatistic,
  type IntervalState,
  type MixedRows,
  medianFactor,
  type PredictedInterval,
  quantileShift,
  type StatisticColumn,
} from './interval-statistics.ts';
import { correctLearned, createLearnedCorrections, type LearnedCorrections } from './learned-corrections.ts';
import { createLogMeans } from './log-means.ts';
import { createRollingMaximum, type RollingMaximum } from './rolling-maximum.ts';
import { createServerQuantiles, type ServerQuantiles } from './server-quantiles.ts';

/**
 * Means that each event decays by `FEEDBACK_DELAY_DECAY`. Intervals use their sum. The weights of experts use only the first,
 * since they should follow a server even within one report.
 *
 * Example: a report of 500 rows is learned in parts of 32. When its 101st row is learned, 100 others have been learned since its
 * forecast: 96 in earlier parts, which count for `reportDelay`, and 4 in its own part, which count for `feedbackDelay`.
 */
export interface FeedbackDelays {
  /** How many times of other requests are observed between a prediction and its own time (delayed feedback). */
  feedbackDelay: number;
  /** How many more were learned in earlier parts of the same report (and of concurrent reports). */
  reportDelay: number;
}

export interface PredictionIntervals {
  readonly ofSlot: AdaptiveQuantiles;
  readonly ofServers: ServerQuantiles;
  readonly ofLearned: LearnedCorrections;
  /** The largest recent residual log(observed / predicted). */
  readonly rollingMaximum: RollingMaximum;
  /** The largest recent excess observed - predicted, in milliseconds. */
  readonly excessMaximum: RollingMaximum;
  readonly delays: FeedbackDelays;
  /** Writes the statistic of each row. */
  fill(mixed: MixedRows, column: StatisticColumn): void;
  predictInterval(mixtureMs: number, server: number, options?: IntervalOptions): PredictedInterval;
  /** Returns the state that intervals at this server depend on. Each observed time changes its arrays in place. */
  readState(server: number): { readonly slot: SlotState; readonly server: ServerState };
  /** `logRatio` is log(observed / mixture), the residual before it is divided by the spread. */
  observe(interval: PredictedInterval, server: number, logRatio: number): void;
  replaceCalibration(calibration: Calibration): void;
}

export interface IntervalOptions {
  /** The lower bound of every quantile above the median. */
  readonly leastMs?: number | undefined;
  /** As of an earlier moment. */
  readonly asOf?: DatedState | undefined;
}

/**
 * The largest shift of the median, as a logarithm. Mean residuals (`residual-tracker.ts`) correct a larger lasting bias. Without
 * this limit, a wide spread at an unseen load could change the median by a factor of e.
 */
const MAX_MEDIAN_SHIFT = 0.05;
/** At this feedback delay the limit of the median's shift is half as large. */
const HALF_FEEDBACK_DELAY = 3;
export const FEEDBACK_DELAY_DECAY = 0.98;
/**
 * A short predicted time is now and then exceeded many times over, and a long one is not. So in milliseconds a quantile exceeds
 * its prediction by at most this many times the largest recent excess, whatever the load.
 */
const EXCESS_MARGIN = 2;

/**
 * Step 4: blends, for each bucket, the corrected learned quantiles with the recent ones; undefined while residuals are few. Recent
 * residuals of the slot have one quantile for every load; learned ones have one for each bucket.
 */
function blendQuantiles(
  learned: IntervalScale,
  { recent, learnedCorrections, evidence }: SlotState,
): QuantileTable | undefined {
  if (recent === undefined) return undefined;
  if (!isBlended(learned, { evidence })) return { quantiles: recent, stride: 0 };
  const share = shareOfRecent(learned, { evidence });
  const quantiles = new Float64Array(learned.quantiles.length);
  // A loop: this runs for every call and every report, and `map` costs many times as much.
  for (let i = 0; i < quantiles.length; i++) {
    const level = i % QUANTILE_LEVELS.length;
    const quantile = correctLearned(learned.quantiles[i]!, recent[level]!, learnedCorrections[level]!);
    quantiles[i] = quantile + share * (recent[level]! - quantile);
  }
  return { quantiles, stride: QUANTILE_LEVELS.length };
}

/** How far the recent quantiles are above the learned ones of a bucket; undefined where these are not blended with recent ones. */
function findLearnedRoom(
  learned: IntervalScale,
  { recent, evidence }: SlotState,
  bucket: number,
): Float64Array | undefined {
  if (recent === undefined || !isBlended(learned, { evidence })) return undefined;
  const room = new Float64Array(recent.length);
  for (let level = 0; level < room.length; level++)
    room[level] = recent[level]! - learned.quantiles[bucket * learned.stride + level]!;
  return room;
}

/** A median that follows delayed feedback oscillates: the longer the delay, the less it may follow. */
function limitMedianShift(feedbackDelay: number): number {
  return MAX_MEDIAN_SHIFT / (1 + feedbackDelay / HALF_FEEDBACK_DELAY);
}

interface PredictedTime {
  readonly mixtureMs: number;
  /** The spread at the load of the request. */
  readonly spread: number;
  /** The corrections of its server. */
  readonly corrections: Float64Array;
  /** The lower bound of every quantile above the median: step 8, in units of the spread. */
  readonly floor: number;
}

/** Returns quantiles in units of the spread, one for each of `QUANTILE_LEVELS`. */
function predictQuantiles(state: IntervalState, { mixtureMs, spread, corrections, floor }: PredictedTime): number[] {
  return QUANTILE_LEVELS.map((_, level) => {
    // Divided by the spread here and multiplied by it later, so the median shifts equally at every load.
    if (level === MEDIAN) return ((state.quantiles[MEDIAN]! + corrections[MEDIAN]!) * state.typicalSpread) / spread;
    return Math.max(floor, quantileShift({ ...state, level }, corrections, mixtureMs) / spread);
  });
}

/** Step 3 with the correction of the server, without the limits of steps 6 to 8. */
function correctRecent(recent: Float64Array | undefined, corrections: Float64Array): readonly number[] | undefined {
  if (recent === undefined) return undefined;
  let highest = Number.NEGATIVE_INFINITY;
  return QUANTILE_LEVELS.map((_, level) => {
    highest = Math.max(highest, recent[level]! + corrections[level]!);
    return highest;
  });
}

/** The parts that observed times change. */
type LearnedParts = Pick<
  PredictionIntervals,
  'ofSlot' | 'ofServers' | 'ofLearned' | 'rollingMaximum' | 'excessMaximum' | 'delays'
>;

function createLearned(): LearnedParts {
  const delays: FeedbackDelays = { feedbackDelay: 0, reportDelay: 0 };
  return {
    ofSlot: createAdaptiveQuantiles(() => sumDelays(delays)),
    ofServers: createServerQuantiles(),
    ofLearned: createLearnedCorrections(),
    rollingMaximum: createRollingMaximum(),
    excessMaximum: createRollingMaximum(),
    delays,
  };
}

function sumDelays({ feedbackDelay, reportDelay }: FeedbackDelays): number {
  return feedbackDelay + reportDelay;
}

function readSlotState({ ofSlot, ofLearned, rollingMaximum, excessMaximum, delays }: LearnedParts): SlotState {
  return {
    recent: ofSlot.quantiles(),
    evidence: ofSlot.evidence,
    learnedCorrections: ofLearned.corrections,
    largestShift: rollingMaximum.value,
    largestExcessMs: excessMaximum.value,
    delay: sumDelays(delays),
    count: ofSlot.count,
  };
}

function readServerState({ ofServers }: LearnedParts, server: number): ServerState {
  return { corrections: ofServers.correctionsOf(server), count: ofServers.countOf(server) };
}

export function createPredictionIntervals(target: PredictionTarget, calibration: Calibration): PredictionIntervals {
  const learned = createLearned();
  const { ofSlot, ofServers, ofLearned, rollingMaximum, excessMaximum, delays } = learned;
  const blendLogMeans = createLogMeans(ofSlot);
  let scale = measureScale(calibration);

  function toIntervalState(slot: SlotState): IntervalState {
    return {
      ...scale,
      ...blendQuantiles(scale, slot),
      readLogMeans: () => blendLogMeans(scale),
      lowerQuantile: ofSlot.lowerQuantile(),
      learnedQuantiles: scale.quantiles,
      maxShift: slot.largestShift,
      maxExcessMs: EXCESS_MARGIN * slot.largestExcessMs,
      findShift: SHIFT_OF[target],
      ofServers,
      maxMedianShift: limitMedianShift(slot.delay),
    };
  }

  return {
    ...learned,
    fill: (mixed, column) => fillStatistic(toIntervalState(readSlotState(learned)), mixed, column),
    readState: (server) => ({ slot: readSlotState(learned), server: readServerState(learned, server) }),
    predictInterval(mixtureMs, server, { leastMs = 0, asOf } = {}) {
      const { slot = readSlotState(learned), server: ofServer = readServerState(learned, server) } = asOf ?? {};
      const state = toIntervalState(slot);
      const bucket = findBucket(scale.edges, mixtureMs);
      const spread = scale.spreads[bucket]!;
      const { corrections } = ofServer;
      const floor = Math.log(Math.max(medianFactor(state, corrections), leastMs / mixtureMs)) / spread;
      const quantiles = predictQuantiles(state, { mixtureMs, spread, corrections, floor });
      const before = { observedBefore: slot.count, observedOfServerBefore: ofServer.count };
      const recentQuantiles = correctRecent(slot.recent, corrections) ?? quantiles;
      const learnedRoom = findLearnedRoom(scale, slot, bucket);
      const { maxMedianShift } = state;
      return { mixtureMs, spread, quantiles, recentQuantiles, floor, learnedRoom, maxMedianShift, ...before };
    },
    observe(interval, server, logRatio) {
      const { mixtureMs, spread, quantiles, recentQuantiles: recent } = interval;
      rollingMaximum.observe(logRatio);
      excessMaximum.observe(mixtureMs * Math.expm1(logRatio));
      const residual = logRatio / spread;
      const eventsMeanwhile = countSince(interval.observedBefore, ofSlot.count);
      observeDelay(delays, eventsMeanwhile, interval.reportedMeanwhile);
      ofSlot.observe(residual, { quantiles, recent }, eventsMeanwhile);
      ofLearned.observe(residual, interval, eventsMeanwhile);
      const ofServerMeanwhile = countSince(interval.observedOfServerBefore, ofServers.countOf(server));
      ofServers.observe(server, residual, quantiles, ofServerMeanwhile);
    },
    replaceCalibration(next) {
      scale = measureScale(next);
    },
  };
}

function observeDelay(delays: FeedbackDelays, eventsMeanwhile: number, reportedMeanwhile = 0): void {
  delays.feedbackDelay = decayMean(delays.feedbackDelay, Math.max(0, eventsMeanwhile - reportedMeanwhile));
  delays.reportDelay = decayMean(delays.reportDelay, reportedMeanwhile);
}

function decayMean(mean: number, value: number): number {
  return FEEDBACK_DELAY_DECAY * mean + (1 - FEEDBACK_DELAY_DECAY) * value;
}

/** Counts begin again when a state is restored or the number of a server is given to another, so `now` may be below `before`. */
function countSince(before: number, now: number): number {
  return Math.max(0, now - before);
}
