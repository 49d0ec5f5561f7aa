/**
 * The largest log ratio of observed to predicted time among the newest residuals. It bounds the predicted quantiles:
 * rescaling a low-variance residual to a high-variance load can exceed every latency observed.
 */
import { MIN_RESIDUALS } from './conformal.ts';

const WINDOW = 300;

export interface RollingMaximum {
  observe(logRatio: number): void;
  /** At least 0; infinity until MIN_RESIDUALS were observed. */
  readonly value: number;
}

export function createRollingMaximum(): RollingMaximum {
  const window = new Float64Array(WINDOW);
  let count = 0;
  let maximum = Number.POSITIVE_INFINITY;
  return {
    get value() {
      return maximum;
    },
    observe(logRatio) {
      const dropped = window[count % WINDOW]!;
      window[count % WINDOW] = logRatio;
      count++;
      if (count < MIN_RESIDUALS) return;
      // Scans the window only when the maximum itself drops out of it.
      if (count === MIN_RESIDUALS || dropped === maximum)
        maximum = Math.max(0, ...window.subarray(0, Math.min(count, WINDOW)));
      else maximum = Math.max(maximum, logRatio);
    },
  };
}
