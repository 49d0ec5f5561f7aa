/**
 * Rounds gradients and weights to whole numbers, so that sums are exact in any order. Histograms of the plain and of the
 * WebAssembly kernel are therefore equal to the last bit, and one 64-bit addition carries both sums.
 */

const WEIGHT_LEVELS = 255;

export interface QuantisedWeights {
  readonly weights: Int32Array;
  /** The true weight is about `weights * scale`. */
  readonly scale: number;
}

export function quantiseWeights(weights: Float64Array | undefined, rowCount: number): QuantisedWeights {
  if (weights === undefined) return { weights: new Int32Array(rowCount).fill(1), scale: 1 };
  const largest = weights.reduce((max, weight) => Math.max(max, weight), 0);
  if (!(largest > 0)) return { weights: new Int32Array(rowCount), scale: 1 };
  const isWhole = largest <= WEIGHT_LEVELS && weights.every(Number.isInteger);
  const scale = isWhole ? 1 : largest / WEIGHT_LEVELS;
  // A row with a small weight still counts, as one unit.
  return {
    weights: Int32Array.from(weights, (weight) => (weight > 0 ? Math.max(1, Math.round(weight / scale)) : 0)),
    scale,
  };
}

/** Returns how many low bits of a packed 64-bit entry hold the sum of weights. */
export function countWeightBits(weights: Int32Array): number {
  let sum = 0;
  for (const weight of weights) sum += weight;
  return Math.max(1, Math.ceil(Math.log2(sum + 1)));
}

/** Returns the bits of one gradient: sums of all rows must fit in 64 bits together with the weights, and in the 53 bits of a double. */
export function countGradientBits(weightBits: number, rowCount: number): number {
  const rowBits = Math.ceil(Math.log2(rowCount + 1));
  return Math.min(30, 62 - weightBits - rowBits, 52 - rowBits);
}

/** Writes `gradients` as whole numbers of up to `bits` bits; they share one scale. */
export function quantiseGradients(gradients: Float64Array, bits: number, quantised: Int32Array): void {
  let largest = 0;
  for (let i = 0; i < gradients.length; i++) {
    const size = Math.abs(gradients[i]!);
    if (size > largest) largest = size;
  }
  const scale = largest > 0 ? (2 ** bits - 1) / largest : 0;
  for (let i = 0; i < gradients.length; i++) quantised[i] = Math.floor(gradients[i]! * scale + 0.5);
}
