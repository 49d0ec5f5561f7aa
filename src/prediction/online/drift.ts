/**
 * Notices that a model does not fit any more: its errors have moved, or its promises are not kept. Page–Hinkley (Page
 * 1954) sums deviations of the errors from their running mean beyond a tolerance, and alarms when a sum has risen far
 * above its least; coverage is a decayed mean of about the last 100 events.
 */
export interface DriftDetector {
  /** Why this event raises an alarm, if it does; the detector then begins anew. `isCovered`: it stayed below its p90. */
  observe(residual: number, isCovered: boolean): DriftCause | undefined;
}

export type DriftCause = 'error' | 'coverage';

/** Moves of less than this are not worth a refit: a log error of 5 %. */
const TOLERANCE = 0.05;
/** A move of 0.3 beyond the tolerance is noticed after about 30 events. */
const THRESHOLD = 8;
const MIN_EVENTS = 30;
const PROMISED = 0.9;
const COVERAGE_STEP = 0.01;
/** Four times as far below the promise as the mean wanders by itself. */
const LEAST_COVERAGE = PROMISED - 4 * Math.sqrt((PROMISED * (1 - PROMISED) * COVERAGE_STEP) / (2 - COVERAGE_STEP));

export function createDriftDetector(): DriftDetector {
  let count = 0;
  let mean = 0;
  let risen = 0;
  let fallen = 0;
  let coverage = PROMISED;

  function begin(): void {
    count = 0;
    mean = 0;
    risen = 0;
    fallen = 0;
    coverage = PROMISED;
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
