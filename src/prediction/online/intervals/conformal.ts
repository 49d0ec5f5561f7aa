/**
 * Quantiles that keep their coverage while servers drift: adaptive conformal inference (Gibbs & Candès 2021). The
 * residuals of the last events give the quantile. Its level moves a little after each event, up when the observed time
 * was above the predicted quantile, down when it was below, so that in the long run the stated share stays below.
 * Residuals are in units of the spread that the model measured at that load while learning.
 */
import { conformalQuantile } from '../../model/calibration.ts';

/** The quantiles whose coverage is kept. */
export const QUANTILE_LEVELS = [0.5, 0.9, 0.95, 0.99] as const;
export type QuantileLevel = (typeof QUANTILE_LEVELS)[number];
/** The level of the lower bound. It is read off the window: no step corrects its coverage. */
const LOWER_LEVEL = 0.1;

const WINDOW = 300;
/**
 * Step of each level after an event, in proportion to the share of misses that it allows. The median stays that of the
 * window: it is a prediction, and swings would cost more accuracy than they gain in coverage.
 */
const STEPS = QUANTILE_LEVELS.map((level) => (level === 0.5 ? 0 : 0.25 * (1 - level)));
/** The most that all steps taken while an answer was under way may add up to. */
const MAX_GAIN = 0.5;
/** Above it every quantile would be the largest residual of the window, one stalled request. */
const MAX_LEVEL = 0.995;
/** With fewer residuals than this, what the model measured while learning is better. */
export const MIN_RESIDUALS = 20;
/** The window is sorted again after this many events. */
const REFRESH_EVERY = 8;

export interface AdaptiveQuantiles {
  /** One residual for each of `QUANTILE_LEVELS`; undefined before there are MIN_RESIDUALS. */
  quantiles(): Float64Array | undefined;
  /** The residual that one of ten stays below; undefined before there are MIN_RESIDUALS. */
  lowerQuantile(): number | undefined;
  /**
   * `predicted` are the quantiles that were predicted for this request, one for each level, and `since` is the number of
   * events observed between prediction and end: the later the end, the smaller the step, or the levels would swing.
   */
  observe(residual: number, predicted?: readonly number[], since?: number): void;
  /** The share of recent events that stayed below this quantile. */
  coverage(level: QuantileLevel): number;
  readonly count: number;
  save(): SavedQuantiles;
  restore(saved: SavedQuantiles): void;
}

export interface SavedQuantiles {
  readonly residuals: readonly number[];
  readonly levels: readonly number[];
  readonly coverages: readonly number[];
}

export function createAdaptiveQuantiles(): AdaptiveQuantiles {
  const window = new Float64Array(WINDOW);
  const adaptedLevels = Float64Array.from(QUANTILE_LEVELS);
  const coverages = Float64Array.from(QUANTILE_LEVELS);
  const quantiles = new Float64Array(QUANTILE_LEVELS.length);
  let count = 0;
  let sorted = new Float64Array(0);

  function refresh(): void {
    sorted = window.slice(0, Math.min(count, WINDOW)).sort();
    for (let p = 0; p < QUANTILE_LEVELS.length; p++) placeQuantile(p);
  }

  function placeQuantile(p: number): void {
    quantiles[p] = conformalQuantile(sorted, adaptedLevels[p]!);
  }

  function moveLevel(p: number, isCovered: boolean, since: number): void {
    const covered = isCovered ? 1 : 0;
    coverages[p] = coverages[p]! * 0.99 + 0.01 * covered;
    const step = Math.min(STEPS[p]!, MAX_GAIN / (1 + since));
    const next = adaptedLevels[p]! + step * (QUANTILE_LEVELS[p]! - covered);
    adaptedLevels[p] = Math.max(0.02, Math.min(MAX_LEVEL, next));
  }

  /** Oldest first. */
  function listResiduals(): number[] {
    const next = count % WINDOW;
    return count <= WINDOW ? [...window.subarray(0, count)] : [...window.subarray(next), ...window.subarray(0, next)];
  }

  return {
    get count() {
      return count;
    },
    quantiles: () => (count < MIN_RESIDUALS ? undefined : quantiles),
    lowerQuantile: () => (count < MIN_RESIDUALS ? undefined : conformalQuantile(sorted, LOWER_LEVEL)),
    coverage: (level) => coverages[QUANTILE_LEVELS.indexOf(level)]!,
    observe(residual, predicted = [...quantiles], since = 0) {
      if (count >= MIN_RESIDUALS)
        for (let p = 0; p < QUANTILE_LEVELS.length; p++) moveLevel(p, residual <= predicted[p]!, since);
      window[count % WINDOW] = residual;
      count++;
      if (count <= MIN_RESIDUALS || count % REFRESH_EVERY === 0) refresh();
      else for (let p = 0; p < QUANTILE_LEVELS.length; p++) placeQuantile(p);
    },
    save: () => ({ residuals: listResiduals(), levels: [...adaptedLevels], coverages: [...coverages] }),
    restore(saved) {
      if (saved.levels.length !== QUANTILE_LEVELS.length) return;
      window.set(saved.residuals.slice(-WINDOW));
      count = Math.min(WINDOW, saved.residuals.length);
      adaptedLevels.set(saved.levels);
      coverages.set(saved.coverages);
      if (count > 0) refresh();
    },
  };
}
