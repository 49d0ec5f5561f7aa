/**
 * Corrects the learned quantiles of a slot, in units of the spread, by the misses of what was predicted (quantile tracking). See
 * Angelopoulos, Candès & Tibshirani 2023. A correction pulls a learned quantile towards the recent one and never beyond it, and
 * has the weight of the learned quantile in the blend. So after a change the p90 is right again as soon as the window of recent
 * residuals is, however large the correction has become. Step 4 of `prediction-intervals.ts`.
 */
import { MEDIAN, NO_CORRECTIONS, QUANTILE_LEVELS } from './conformal.ts';
import { createDelayMean } from './delay-mean.ts';

/** The step of a correction after an event, times (missed ? 1 : 0) − (1 − level). The median has no correction. */
const STEP = 0.02;
/** The most that all steps taken while one request is under way may add up to. */
const MAX_GAIN = 2;
/** The bound of a correction in both directions, in units of the spread. */
export const MAX_LEARNED_CORRECTION = 3;

export interface LearnedCorrections {
  /** One for each of `QUANTILE_LEVELS`, for `correctLearned`. Each event changes the array in place. */
  readonly corrections: Float64Array;
  /** Moves the corrections, but none further out of the range in which it has an effect on a predicted quantile. */
  observe(residual: number, predicted: PredictedBlend, eventsMeanwhile: number): void;
  save(): number[];
  restore(saved: readonly number[]): void;
}

/** The prediction for a request, with one number for each of `QUANTILE_LEVELS`. */
export interface PredictedBlend {
  readonly quantiles: readonly number[];
  /** A quantile at this floor would not fall with its correction. */
  readonly floor: number;
  /** How far the recent quantiles were above the learned ones; undefined if these were not in the blend. */
  readonly learnedRoom: Float64Array | undefined;
}

/** Returns the learned quantile plus its correction, limited to the range from the learned to the recent one. */
export function correctLearned(learned: number, recent: number, correction: number): number {
  const room = recent - learned;
  return learned + Math.max(Math.min(0, room), Math.min(Math.max(0, room), correction));
}

export function createLearnedCorrections(): LearnedCorrections {
  const corrections = Float64Array.from(NO_CORRECTIONS);
  const delayMean = createDelayMean();
  return {
    corrections,
    observe(residual, { quantiles, floor, learnedRoom }, eventsMeanwhile) {
      const step = Math.min(STEP, MAX_GAIN / (1 + delayMean.observe(eventsMeanwhile)));
      if (learnedRoom === undefined) return;
      for (let p = MEDIAN + 1; p < QUANTILE_LEVELS.length; p++) {
        const correction = corrections[p]!;
        const least = quantiles[p]! <= floor ? correction : Math.min(correction, 0, learnedRoom[p]!);
        const most = Math.max(correction, 0, learnedRoom[p]!);
        const moved = correction + step * ((residual > quantiles[p]! ? 1 : 0) - (1 - QUANTILE_LEVELS[p]!));
        const limited = Math.max(least, Math.min(most, moved));
        corrections[p] = Math.max(-MAX_LEARNED_CORRECTION, Math.min(MAX_LEARNED_CORRECTION, limited));
      }
    },
    save: () => [...corrections],
    restore(saved) {
      if (saved.length === QUANTILE_LEVELS.length) corrections.set(saved);
    },
  };
}
