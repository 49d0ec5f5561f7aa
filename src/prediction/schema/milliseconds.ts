/** Decides which observed times are usable, and bounds predictions. */
const MIN_MS = 0.01;

/** A day: what a load beyond all numbers is answered with. */
export const MAX_MS = 86_400_000;

/** A microsecond: nothing that a server did took less. */
export const MIN_OBSERVED_MS = 0.001;

/** Why no request can have taken this long; undefined for a time that one can have taken. */
export function findTimeFault(milliseconds: number): string | undefined {
  if (!(milliseconds > 0 && milliseconds <= MAX_MS)) return 'must be more than 0 and at most a day';
  return milliseconds < MIN_OBSERVED_MS ? `must be at least ${MIN_OBSERVED_MS}` : undefined;
}

/** A finite time above 0, whatever overflowed on the way here. */
export function clampMs(milliseconds: number): number {
  if (milliseconds >= MIN_MS && milliseconds <= MAX_MS) return milliseconds;
  // NaN comes of 0 × infinity, so of a load beyond all numbers.
  return milliseconds < MIN_MS ? MIN_MS : MAX_MS;
}
