/** Draws the rows of one tree. */
import { tossCoins } from '../random.ts';

export interface Sample {
  /** The weight of every row; 0 for those that are left out. */
  readonly weights: Float64Array;
  /** Draws a new sample, for the next tree. */
  draw(): void;
}

export interface SampleSource {
  readonly weights: Float64Array;
  readonly quantised: Int32Array;
  /** The share of rows to take; 1 takes all. */
  readonly share: number;
  readonly random: () => number;
}

/** Keeps `quantised`, the whole-number weights of the grower, in step with the drawn ones. */
export function createSample(source: SampleSource, quantised: Int32Array): Sample {
  quantised.set(source.quantised);
  if (source.share >= 1) return { weights: source.weights, draw: () => {} };
  const mask = new Uint8Array(source.weights.length);
  const weights = new Float64Array(source.weights.length);
  return {
    weights,
    draw() {
      tossCoins(mask, source.share, source.random);
      for (let row = 0; row < mask.length; row++) {
        weights[row] = source.weights[row]! * mask[row]!;
        quantised[row] = source.quantised[row]! * mask[row]!;
      }
    },
  };
}
