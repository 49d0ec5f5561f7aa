/** Decides which observed times are usable, and bounds predictions. */
const MIN_MS = 0.01;

/** One day: the largest prediction (for inputs that overflow), and the largest observed time that is accepted. */
export const MAX_MS = 86_400_000;

/** One microsecond: neither a first token nor a further token takes less. */
export const MIN_OBSERVED_MS = 0.001;

/** Returns why an observed time is refused; undefined if it is usable. */
export function findTimeFault(milliseconds: number): string | undefined {
  if (!(milliseconds > 0 && milliseconds <= MAX_MS)) return 'must be more than 0 and at most a day';
  return milliseconds < MIN_OBSERVED_MS ? `must be at least ${MIN_OBSERVED_MS}` : undefined;
}

/** Returns a finite time above 0, even if the computation overflowed. */
export function clampMs(milliseconds: number): number {
  if (milliseconds >= MIN_MS && milliseconds <= MAX_MS) return milliseconds;
  // NaN comes from 0 × infinity, that is, from an input that overflowed.
  return milliseconds < MIN_MS ? MIN_MS : MAX_MS;
}

/** A smaller time does not count from the epoch but from another start, such as that of a run. */
export const FIRST_EPOCH_MS = 1e11;
