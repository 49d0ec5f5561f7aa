/** Computes the confidence interval of a mean error (circular block bootstrap, Politis & Romano 1992). */
import { createRandom } from '../simulator/random-draws.ts';

const DRAWS = 300;
/** Errors close in time are correlated, so they are drawn in blocks of this many. */
const BLOCK = 50;

export interface Interval {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** Returns the mean of these errors with its 90 % confidence interval. */
export function bootstrapMean(errors: readonly number[]): Interval {
  const random = createRandom(1);
  const block = Math.min(BLOCK, errors.length);
  const sums = errors.map(() => 0);
  for (let i = 0; i < sums.length; i++) for (let j = 0; j < block; j++) sums[i]! += errors[(i + j) % errors.length]!;
  const blocks = Math.max(1, Math.round(errors.length / block));
  const means = Array.from({ length: DRAWS }, () => {
    let sum = 0;
    for (let b = 0; b < blocks; b++) sum += sums[Math.floor(random() * sums.length)]!;
    return sum / (blocks * block);
  }).sort((a, b) => a - b);
  const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
  return { mean, low: means[Math.floor(0.05 * DRAWS)]!, high: means[Math.floor(0.95 * DRAWS)]! };
}
