/**
 * Tracks the largest of the newest residuals, which bounds the predicted quantiles. The values are residuals log(observed /
 * predicted), or excesses observed - predicted in milliseconds. Without the bound, a low-variance residual that is rescaled to a
 * high-variance load could exceed every latency observed.
 */
import { MIN_RESIDUALS } from './conformal.ts';

export const MAXIMUM_WINDOW = 300;

export interface RollingMaximum {
  observe(value: number): void;
  /** At least 0; infinity until MIN_RESIDUALS were observed. */
  readonly value: number;
  /** The newest values, oldest first. */
  list(): number[];
  replace(values: readonly number[]): void;
}

export function createRollingMaximum(): RollingMaximum {
  const window = new Float64Array(MAXIMUM_WINDOW);
  let count = 0;
  let maximum = Number.POSITIVE_INFINITY;
  return {
    get value() {
      return maximum;
    },
    list() {
      const first = Math.max(0, count - MAXIMUM_WINDOW);
      return Array.from({ length: count - first }, (_, i) => window[(first + i) % MAXIMUM_WINDOW]!);
    },
    replace(values) {
      const newest = values.slice(-MAXIMUM_WINDOW);
      window.set(newest);
      count = newest.length;
      maximum = count < MIN_RESIDUALS ? Number.POSITIVE_INFINITY : Math.max(0, ...newest);
    },
    observe(value) {
      const dropped = window[count % MAXIMUM_WINDOW]!;
      window[count % MAXIMUM_WINDOW] = value;
      count++;
      if (count < MIN_RESIDUALS) return;
      // Scans the window only when the maximum itself drops out of it, which is at each value if all are equal.
      if (count === MIN_RESIDUALS || dropped === maximum)
        maximum = findMaximum(window, Math.min(count, MAXIMUM_WINDOW));
      else maximum = Math.max(maximum, value);
    },
  };
}

/** A loop, since spread arguments of `Math.max` would allocate an object for each value. */
function findMaximum(values: Float64Array, count: number): number {
  let maximum = 0;
  for (let i = 0; i < count; i++) maximum = Math.max(maximum, values[i]!);
  return maximum;
}
