/**
 * Page–Hinkley (Page 1954): notices when the mean of a signal has moved, up or down, by more than noise explains. It
 * sums deviations from the running mean beyond a tolerance, and alarms when a sum has risen far above its least.
 */
export interface DriftDetector {
  /** True when this value raises an alarm; the detector then begins anew. */
  observe(value: number): boolean;
  readonly alarms: number;
}

/** Moves of less than this are not worth a refit: a log error of 5 %. */
const TOLERANCE = 0.05;
/** A move of 0.3 beyond the tolerance is noticed after about 30 events. */
const THRESHOLD = 8;
const MIN_EVENTS = 30;

export function createDriftDetector(): DriftDetector {
  let count = 0;
  let mean = 0;
  let risen = 0;
  let fallen = 0;
  let alarms = 0;

  function begin(): void {
    count = 0;
    mean = 0;
    risen = 0;
    fallen = 0;
  }

  return {
    get alarms() {
      return alarms;
    },
    observe(value) {
      count++;
      mean += (value - mean) / count;
      risen = Math.max(0, risen + value - mean - TOLERANCE);
      fallen = Math.max(0, fallen - value + mean - TOLERANCE);
      if (count < MIN_EVENTS || Math.max(risen, fallen) < THRESHOLD) return false;
      alarms++;
      begin();
      return true;
    },
  };
}
