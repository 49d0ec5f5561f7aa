/**
 * Detects drift of a model: its errors have changed (Page–Hinkley), or its p90 loses coverage. The Page–Hinkley test (Page 1954)
 * sums the deviations of the errors from their running mean beyond a tolerance, and raises an alarm when a sum has risen far
 * above its minimum. Coverage is a decayed mean of about the last 100 events.
 */
export interface DriftDetector {
  /** Returns the cause if this event raises an alarm; the detector then starts again. `isCovered` comes from `isNearlyCovered`. */
  observe(residual: number, isCovered: boolean): DriftCause | undefined;
}

export type DriftCause = 'error' | 'coverage';

/** The tolerance: a smaller change of the mean error, 5 % as a logarithm, is not worth a refit. */
const TOLERANCE = 0.05;
/** A change of the mean error by 0.3 beyond the tolerance raises an alarm after about 30 events. */
const THRESHOLD = 8;
const MIN_EVENTS = 30;
/** This share of times should stay below their p90. */
const EXPECTED_COVERAGE = 0.9;
const COVERAGE_STEP = 0.01;
/** Four standard deviations of the decayed mean below the expected coverage. */
const LEAST_COVERAGE =
  EXPECTED_COVERAGE -
  4 * Math.sqrt((EXPECTED_COVERAGE * (1 - EXPECTED_COVERAGE) * COVERAGE_STEP) / (2 - COVERAGE_STEP));

/**
 * Whether a time stayed below its p90, or above it by no more than the tolerance. Requests that are under way together miss their
 * p90 together. Where errors are about 1 %, 16 requests that take 1 % longer than their p90 would raise an alarm without the
 * tolerance.
 */
export function isNearlyCovered(observedMs: number, p90Ms: number): boolean {
  return observedMs <= p90Ms * Math.exp(TOLERANCE);
}

export function createDriftDetector(): DriftDetector {
  let count = 0;
  let mean = 0;
  let risen = 0;
  let fallen = 0;
  let coverage = EXPECTED_COVERAGE;

  function begin(): void {
    count = 0;
    mean = 0;
    risen = 0;
    fallen = 0;
    coverage = EXPECTED_COVERAGE;
  }

  function findCause(): DriftCause | undefined {
    if (count < MIN_EVENTS) return undefined;
    if (Math.max(risen, fallen) >= THRESHOLD) return 'error';
    return coverage < LEAST_COVERAGE ? 'coverage' : undefined;
  }

  return {
    observe(residual, isCovered) {
      count++;
      mean += (residual - mean) / count;
      risen = Math.max(0, risen + residual - mean - TOLERANCE);
      fallen = Math.max(0, fallen - residual + mean - TOLERANCE);
      coverage += COVERAGE_STEP * (Number(isCovered) - coverage);
      const cause = findCause();
      if (cause !== undefined) begin();
      return cause;
    },
  };
}
