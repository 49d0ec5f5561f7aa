/**
 * The furthest that any time lately was above what was said of it, as a logarithm. Residuals are kept in units of the
 * spread at their load: one of a narrow load, told at a wide one, would promise what nobody has ever waited.
 */
import { MIN_RESIDUALS } from './conformal.ts';

const WINDOW = 300;

export interface Reach {
  observe(logRatio: number): void;
  /** Infinity while nothing is promised by what happened. */
  readonly furthest: number;
}

export function createReach(): Reach {
  const window = new Float64Array(WINDOW);
  let count = 0;
  let furthest = Number.POSITIVE_INFINITY;
  return {
    get furthest() {
      return furthest;
    },
    observe(logRatio) {
      const left = window[count % WINDOW]!;
      window[count % WINDOW] = logRatio;
      count++;
      if (count < MIN_RESIDUALS) return;
      // A look at all of them only when the furthest has left.
      if (count === MIN_RESIDUALS || left === furthest)
        furthest = Math.max(0, ...window.subarray(0, Math.min(count, WINDOW)));
      else furthest = Math.max(furthest, logRatio);
    },
  };
}
