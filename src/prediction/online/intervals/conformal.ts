/**
 * Adapts quantile levels so that p90 keeps its coverage while servers drift (Gibbs & Candès 2021). The quantile is taken from the
 * scaled residuals of the last events. Its level moves a little after each event, up when the observed time was above the
 * predicted quantile, down when it was below, so that in the long run the stated share stays below. A scaled residual is
 * log(observed / predicted) divided by the spread that the training measured at that load. Step 3 of `prediction-intervals.ts`.
 * In this file "residual" means a scaled one.
 */
import { conformalQuantile } from '../../model/calibration.ts';
import { createDelayMean } from './delay-mean.ts';

/** The quantiles whose coverage is kept. */
export const QUANTILE_LEVELS = [0.5, 0.9, 0.95, 0.99] as const;
export const MEDIAN = QUANTILE_LEVELS.indexOf(0.5);
export type QuantileLevel = (typeof QUANTILE_LEVELS)[number];
/** The level of the lower bound: an empirical quantile of the window, whose coverage is not corrected. */
const LOWER_LEVEL = 0.1;

/**
 * How many residuals are kept. The newest 300 are used without a feedback delay, and up to all with one, since residuals of
 * requests that were under way together are correlated.
 */
export const KEPT_RESIDUALS = 1000;
const UNDELAYED_WINDOW = 300;
/** At this feedback delay, twice as many residuals are needed for the same certainty. */
const DOUBLING_FEEDBACK_DELAY = 10;
/**
 * Step of each level after an event, in proportion to the share of misses that the level allows. The median's level does not
 * move: the median is a prediction, and swings would cost more accuracy than they gain in coverage.
 */
const STEPS = QUANTILE_LEVELS.map((level) => (level === 0.5 ? 0 : 0.25 * (1 - level)));
/** The most that all steps taken while one request is under way may add up to. */
const MAX_GAIN = 0.3;
/**
 * How far a level may be from its nominal one, as a multiple of the share of misses that the nominal one allows (0.1 at p90).
 * Requests that are under way together are covered or missed together. So the more there are, the less a series of hits or misses
 * shows, and the narrower the range is. Without it, a calm hour would move the level so far down that the next surge is missed as
 * a whole.
 */
const LEVEL_RANGE = 1.5;
/**
 * Step of the correction of a quantile after an event, in units of the spread, times (missed ? 1 : 0) − (1 − level). Levels have
 * a range, so they cannot correct a lasting bias. Corrections can: they add up all misses, and nothing pulls them back (the
 * integral term of conformal PID control, Angelopoulos, Candès & Tibshirani 2023). The steps are so small that a single surge
 * moves a quantile little. The median has no correction.
 */
const CORRECTION_STEP = 0.01;
/** The most that all steps of a correction taken while one request is under way may add up to. */
const MAX_CORRECTION_GAIN = 0.3;
/**
 * The bound of a correction in both directions, in units of the spread. From the upper bound a correction falls by step × (1 −
 * level) at each covered event: it is 0 again after at least 3,000 covered events at p90, 6,000 at p95 and 30,000 at p99. From
 * the lower bound it is 0 again after 300 to 340 misses, or more with a longer feedback delay.
 */
export const MAX_SLOT_CORRECTION = 3;
/** Coverage is a mean of about the last 100 events. */
export const COVERAGE_DECAY = 0.99;
export const MIN_LEVEL = 0.02;
/** Near 1 a quantile is the largest residual of the window, which may be one stalled request. */
export const MAX_LEVEL = 0.995;
/** With fewer residuals than this, the quantiles that were measured in training are better. */
export const MIN_RESIDUALS = 20;
/** The window is sorted again after this many events, or after this share of its size if that is more. */
const REFRESH_EVERY = 8;
const REFRESH_SHARE = 0.01;

/** One for each of `QUANTILE_LEVELS`. */
export const NO_CORRECTIONS: readonly number[] = QUANTILE_LEVELS.map(() => 0);

export interface AdaptiveQuantiles {
  /** One residual for each of `QUANTILE_LEVELS`; undefined below MIN_RESIDUALS residuals (more with a feedback delay). */
  quantiles(): Float64Array | undefined;
  /** The p10 of the residuals; undefined as long as `quantiles()` is. */
  lowerQuantile(): number | undefined;
  /**
   * The residuals that quantiles are taken from, in ascending order; the same array until they are sorted again. Undefined as
   * long as `quantiles()` is.
   */
  window(): Float64Array | undefined;
  /** The information in the window, as a share of that in a full window of requests whose times are known at once. */
  readonly evidence: number;
  /**
   * `predicted` are the quantiles that were predicted for this request, one for each level. `eventsMeanwhile` is how many events
   * were observed between this request's prediction and its end. Their mean caps the steps of levels and corrections (`MAX_GAIN`,
   * `MAX_CORRECTION_GAIN`), which would oscillate otherwise.
   */
  observe(residual: number, predicted?: PredictedQuantiles, eventsMeanwhile?: number): void;
  /** The share of recent events that stayed below this quantile. */
  coverage(level: QuantileLevel): number;
  readonly count: number;
  save(): SavedQuantiles;
  restore(saved: SavedQuantiles): void;
  /**
   * Restores while requests are under way. For them, these `events` of other processes count as observed between their forecast
   * and their end.
   */
  replace(saved: SavedQuantiles, events: number): void;
}

export interface PredictedQuantiles {
  readonly quantiles: readonly number[];
  /**
   * The quantiles of recent residuals alone, without floors and caps. Levels and corrections react to misses of these. Wide
   * learned quantiles in the blend, or the bound of a stalled queue, are hardly ever missed: by their misses, levels and
   * corrections would fall too far, and be too low as soon as blend and bound no longer count.
   */
  readonly recent?: readonly number[];
}

export interface SavedQuantiles {
  readonly residuals: readonly number[];
  readonly levels: readonly number[];
  readonly coverages: readonly number[];
  /** In units of the spread. Older releases did not write them. */
  readonly corrections?: readonly number[];
}

/** `readFeedbackDelay`: how many observations of other requests came between a prediction and its own observation, lately. */
export function createAdaptiveQuantiles(readFeedbackDelay: () => number = () => 0): AdaptiveQuantiles {
  const delay = createDelayScale(readFeedbackDelay);
  const window = new Float64Array(KEPT_RESIDUALS);
  const adapted = createAdapted();
  const quantiles = new Float64Array(QUANTILE_LEVELS.length);
  let count = 0;
  let refreshAt = 0;
  let sorted = new Float64Array(0);

  function refresh(): void {
    sorted = listNewest({ window, count }, delay.windowLength(count)).sort();
    refreshAt = count + Math.max(REFRESH_EVERY, Math.floor(REFRESH_SHARE * sorted.length));
    placeQuantiles();
  }

  function placeQuantiles(): void {
    fillQuantiles(quantiles, sorted, { ...adapted, range: delay.levelRange() });
  }

  function replace(saved: SavedQuantiles, events: number): void {
    const residuals = saved.residuals.slice(-KEPT_RESIDUALS);
    count = Math.max(count + events, residuals.length);
    for (const [i, residual] of residuals.entries()) window[(count - residuals.length + i) % KEPT_RESIDUALS] = residual;
    adapted.levels.set(saved.levels);
    adapted.coverages.set(saved.coverages);
    adapted.corrections.set(saved.corrections ?? NO_CORRECTIONS);
    if (count > 0) refresh();
  }

  return {
    get count() {
      return count;
    },
    quantiles: () => (delay.isEnough(count) ? quantiles : undefined),
    window: () => (delay.isEnough(count) ? sorted : undefined),
    get evidence() {
      return delay.evidence(count);
    },
    lowerQuantile: () => (delay.isEnough(count) ? conformalQuantile(sorted, LOWER_LEVEL) : undefined),
    coverage: (level) => adapted.coverages[QUANTILE_LEVELS.indexOf(level)]!,
    observe(residual, predicted = { quantiles: [...quantiles] }, eventsMeanwhile = 0) {
      const meanDelay = delay.observe(eventsMeanwhile);
      if (count >= MIN_RESIDUALS) moveCoverages(adapted.coverages, predicted.quantiles, residual);
      // With fewer residuals the learned quantiles were predicted, and whether they were missed says nothing about the levels.
      if (delay.isEnough(count - eventsMeanwhile)) {
        moveLevels(adapted.levels, predicted, { residual, meanDelay, range: delay.levelRange() });
        moveCorrections(adapted.corrections, predicted, { residual, meanDelay });
      }
      window[count % KEPT_RESIDUALS] = residual;
      count++;
      if (count <= MIN_RESIDUALS || count >= refreshAt) refresh();
      else placeQuantiles();
    },
    save: () => {
      const residuals = [...listNewest({ window, count }, Math.min(count, KEPT_RESIDUALS))];
      const { levels, coverages, corrections } = adapted;
      return { residuals, levels: [...levels], coverages: [...coverages], corrections: [...corrections] };
    },
    restore(saved) {
      if (saved.levels.length === QUANTILE_LEVELS.length) replace(saved, -count);
    },
    replace,
  };
}

/** The numbers that misses move, one for each of `QUANTILE_LEVELS`. */
interface Adapted {
  readonly levels: Float64Array;
  readonly coverages: Float64Array;
  /** In units of the spread. */
  readonly corrections: Float64Array;
}

function createAdapted(): Adapted {
  return {
    levels: Float64Array.from(QUANTILE_LEVELS),
    coverages: Float64Array.from(QUANTILE_LEVELS),
    corrections: Float64Array.from(NO_CORRECTIONS),
  };
}

interface LimitedLevels extends Pick<Adapted, 'levels' | 'corrections'> {
  /** The range that `limitLevel` takes. */
  readonly range: number;
}

function fillQuantiles(
  quantiles: Float64Array,
  sorted: Float64Array,
  { levels, corrections, range }: LimitedLevels,
): void {
  for (let p = 0; p < QUANTILE_LEVELS.length; p++)
    quantiles[p] = conformalQuantile(sorted, limitLevel(levels[p]!, QUANTILE_LEVELS[p]!, range)) + corrections[p]!;
}

/** Measures how much information a number of residuals has: the longer the feedback delay, the less. */
function createDelayScale(readFeedbackDelay: () => number) {
  /** How many residuals are worth as much as one of a request that ends before the next begins. */
  const redundancy = () => 1 + readFeedbackDelay() / DOUBLING_FEEDBACK_DELAY;
  const delayMean = createDelayMean();
  const windowLength = (count: number) => Math.min(count, KEPT_RESIDUALS, Math.round(UNDELAYED_WINDOW * redundancy()));
  return {
    /** Adds the delay of an event, and returns the mean. */
    observe: (eventsMeanwhile: number) => delayMean.observe(eventsMeanwhile),
    windowLength,
    evidence: (count: number) => windowLength(count) / redundancy() / UNDELAYED_WINDOW,
    levelRange: () => LEVEL_RANGE / redundancy(),
    isEnough: (residuals: number) => residuals >= MIN_RESIDUALS * redundancy(),
  };
}

/** Lists the newest residuals, oldest first; `length` must be at most the number that is kept. */
function listNewest(
  { window, count }: { readonly window: Float64Array<ArrayBuffer>; readonly count: number },
  length: number,
): Float64Array<ArrayBuffer> {
  const end = count % KEPT_RESIDUALS;
  if (count <= KEPT_RESIDUALS) return window.slice(count - length, count);
  if (length <= end) return window.slice(end - length, end);
  const newest = new Float64Array(length);
  newest.set(window.subarray(KEPT_RESIDUALS - (length - end)));
  newest.set(window.subarray(0, end), length - end);
  return newest;
}

/** Moves the share of events that stayed below each quantile. */
function moveCoverages(coverages: Float64Array, predicted: readonly number[], residual: number): void {
  for (let p = 0; p < QUANTILE_LEVELS.length; p++)
    coverages[p] = coverages[p]! * COVERAGE_DECAY + (1 - COVERAGE_DECAY) * (residual <= predicted[p]! ? 1 : 0);
}

interface ObservedMiss {
  readonly residual: number;
  readonly meanDelay: number;
  /** The range that `limitLevel` takes. */
  readonly range: number;
}

/** Moves the level of each quantile after an event, up to the limits of its range. */
function moveLevels(
  levels: Float64Array,
  { quantiles, recent = quantiles }: PredictedQuantiles,
  { residual, meanDelay, range }: ObservedMiss,
): void {
  for (let p = 0; p < QUANTILE_LEVELS.length; p++) {
    const level = levels[p]!;
    const nominal = QUANTILE_LEVELS[p]!;
    const step = Math.min(STEPS[p]!, MAX_GAIN / (1 + meanDelay));
    const moved = level + step * (nominal - (residual <= recent[p]! ? 1 : 0));
    const limited = limitLevel(moved, nominal, range);
    // The range narrows when more requests run together. A level that is then outside returns by its own steps. If it were
    // clamped at once, each process would pull it back, several times as far in all as one process does.
    const isInRange = level === limitLevel(level, nominal, range);
    const isInward = Math.abs(moved - nominal) < Math.abs(level - nominal);
    if (isInRange || isInward) levels[p] = isInRange ? limited : moved;
  }
}

function moveCorrections(
  corrections: Float64Array,
  { quantiles, recent = quantiles }: PredictedQuantiles,
  { residual, meanDelay }: Pick<ObservedMiss, 'residual' | 'meanDelay'>,
): void {
  const step = Math.min(CORRECTION_STEP, MAX_CORRECTION_GAIN / (1 + meanDelay));
  for (let p = MEDIAN + 1; p < QUANTILE_LEVELS.length; p++) {
    const miss = residual > recent[p]! ? 1 : 0;
    const moved = corrections[p]! + step * (miss - (1 - QUANTILE_LEVELS[p]!));
    corrections[p] = Math.max(-MAX_SLOT_CORRECTION, Math.min(MAX_SLOT_CORRECTION, moved));
  }
}

/** `range` is a multiple of the share of misses that the nominal level allows. */
function limitLevel(level: number, nominal: number, range: number): number {
  const width = range * (1 - nominal);
  return Math.max(nominal - width, Math.min(MAX_LEVEL, nominal + width, level));
}
