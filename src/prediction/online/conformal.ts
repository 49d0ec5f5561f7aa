/**
 * Quantiles that keep their promise while things drift: adaptive conformal inference (Gibbs & Candès 2021). The
 * residuals of the last events give the quantile; its level is moved a little after each event, up when the observed
 * time was above what was promised, down when it was below, so that in the long run the stated share stays below.
 * Residuals are in units of the spread that the model measured at that load while learning.
 */
import { conformalQuantile } from '../model/calibration.ts';

/** The quantiles that can be asked for. */
export const PROMISES = [0.5, 0.9, 0.95, 0.99] as const;
export type Promised = (typeof PROMISES)[number];

const WINDOW = 300;
/**
 * Step of each level after an event: the rarer a miss is meant to be, the more it moves the level already. The median
 * stays that of the window: it is a prediction, and swings would cost more than they promise.
 */
const STEPS = PROMISES.map((promised) => (promised === 0.5 ? 0 : 0.25 * (1 - promised)));
/** The most that all steps taken while an answer was under way may add up to. */
const MAX_GAIN = 0.5;
/** Above it the largest residual of the window, some stalled request, would be promised to everyone. */
const MAX_LEVEL = 0.995;
/** Fewer residuals than this say less than what the model measured while learning. */
export const MIN_RESIDUALS = 20;
/** The quantiles are sorted out again after this many events. */
const REFRESH_EVERY = 8;

export interface AdaptiveQuantiles {
  /** The residuals, in units of the spread, that each promised share stays below; undefined while too little is known. */
  quantiles(): Float64Array | undefined;
  /**
   * `promised` are the quantiles that this request was told, one a promise, and `since` how many events were observed
   * meanwhile: the later the answer, the smaller the step, or the levels would swing.
   */
  observe(residual: number, promised?: readonly number[], since?: number): void;
  /** Share of events that stayed below each promise, lately. */
  coverage(promised: Promised): number;
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
  const levels = Float64Array.from(PROMISES);
  const coverages = Float64Array.from(PROMISES);
  const quantiles = new Float64Array(PROMISES.length);
  let count = 0;
  let sorted = new Float64Array(0);

  function refresh(): void {
    sorted = window.slice(0, Math.min(count, WINDOW)).sort();
    for (let p = 0; p < PROMISES.length; p++) placeQuantile(p);
  }

  function placeQuantile(p: number): void {
    quantiles[p] = conformalQuantile(sorted, levels[p]!);
  }

  return {
    get count() {
      return count;
    },
    quantiles: () => (count < MIN_RESIDUALS ? undefined : quantiles),
    coverage: (promised) => coverages[PROMISES.indexOf(promised)]!,
    observe(residual, promised = [...quantiles], since = 0) {
      if (count >= MIN_RESIDUALS)
        for (let p = 0; p < PROMISES.length; p++) {
          const covered = residual <= promised[p]! ? 1 : 0;
          coverages[p] = coverages[p]! * 0.99 + 0.01 * covered;
          const step = Math.min(STEPS[p]!, MAX_GAIN / (1 + since));
          const next = levels[p]! + step * (PROMISES[p]! - covered);
          levels[p] = Math.max(0.02, Math.min(MAX_LEVEL, next));
        }
      window[count % WINDOW] = residual;
      count++;
      if (count <= MIN_RESIDUALS || count % REFRESH_EVERY === 0) refresh();
      else for (let p = 0; p < PROMISES.length; p++) placeQuantile(p);
    },
    save: () => ({
      residuals:
        count <= WINDOW
          ? [...window.subarray(0, count)]
          : [...window.subarray(count % WINDOW), ...window.subarray(0, count % WINDOW)],
      levels: [...levels],
      coverages: [...coverages],
    }),
    restore(saved) {
      if (saved.levels.length !== PROMISES.length) return;
      window.set(saved.residuals.slice(-WINDOW));
      count = Math.min(WINDOW, saved.residuals.length);
      levels.set(saved.levels);
      coverages.set(saved.coverages);
      if (count > 0) refresh();
    },
  };
}
