/**
 * Layer 4: whom to believe. Several experts predict the logarithm of a time; each is weighed by how well it has done
 * lately, so that the mixture is never much worse than the best of them, and a bad one costs nothing for long.
 */
import type { Speed } from './server-state.ts';

/** What an expert says: physics or trees, corrected by a recent offset or not. */
export interface Expert {
  readonly name: string;
  readonly base: 'physics' | 'trees';
  readonly speed: Speed | undefined;
}

export const EXPERTS: readonly Expert[] = [
  { name: 'physics', base: 'physics', speed: undefined },
  { name: 'physics + slow offset', base: 'physics', speed: 1 },
  { name: 'physics + fast offset', base: 'physics', speed: 0 },
  { name: 'trees', base: 'trees', speed: undefined },
  { name: 'trees + slow offset', base: 'trees', speed: 1 },
  { name: 'trees + fast offset', base: 'trees', speed: 0 },
];

/** Losses of about the last 60 events count. */
const DECAY = 0.985;
/** How sharply a lower loss is preferred, in units of the best expert's own mean loss. */
const SHARPNESS = 12;
/** One wild request must not dethrone an expert. */
const MAX_LOSS = 1;
/** Before anything is known, an expert that learned from rows is believed, without offsets. */
const INITIAL_TRUST = [0.05, 0.1, 0.1, 0.35, 0.3, 0.1] as const;

export interface Selector {
  /** One weight an expert; they sum to 1. */
  readonly weights: Float64Array;
  /** `predictions` are the logarithms that the experts said. */
  observe(predictions: ArrayLike<number>, observedLog: number): void;
  /** Mean absolute log error of each expert lately. */
  losses(): number[];
  save(): { readonly losses: number[]; readonly count: number };
  restore(saved: { readonly losses: readonly number[]; readonly count: number }): void;
}

export function createSelector(): Selector {
  const sums = new Float64Array(EXPERTS.length);
  const weights = Float64Array.from(INITIAL_TRUST);
  let count = 0;

  function reweigh(): void {
    let least = Number.POSITIVE_INFINITY;
    for (let e = 0; e < EXPERTS.length; e++) least = Math.min(least, sums[e]! / count);
    // The confidence grows with what was seen: after few events the initial trust still speaks.
    const sharpness = (SHARPNESS * count) / (count + 10) / Math.max(least, 1e-3);
    let total = 0;
    for (let e = 0; e < EXPERTS.length; e++) {
      weights[e] = INITIAL_TRUST[e]! * Math.exp(-sharpness * (sums[e]! / count - least));
      total += weights[e]!;
    }
    for (let e = 0; e < EXPERTS.length; e++) weights[e]! /= total;
  }

  return {
    weights,
    observe(predictions, observedLog) {
      for (let e = 0; e < EXPERTS.length; e++)
        sums[e] = sums[e]! * DECAY + Math.min(MAX_LOSS, Math.abs(observedLog - predictions[e]!));
      count = count * DECAY + 1;
      reweigh();
    },
    losses: () => Array.from(sums, (sum) => (count > 0 ? sum / count : 0)),
    save: () => ({ losses: [...sums], count }),
    restore(saved) {
      if (saved.losses.length !== EXPERTS.length || !(saved.count > 0)) return;
      sums.set(saved.losses);
      count = saved.count;
      reweigh();
    },
  };
}
