import type { World } from './world.ts';

/** Corrections below this are followed at once: clocks are slewed all the time. */
const STEP_MS = 1000;
/** How long the machine's clock has to stay where it jumped to, until that is believed. */
const SETTLE_MS = 60_000;
/** Two processes, or one before and after a correction, may differ by this much. */
export const MAX_SKEW_MS = 60_000;

/**
 * A world whose clock does not jump at once. When the machine's clock jumps, in either direction, time goes on by the
 * monotonic clock; the machine's new time counts once it has lasted for a minute. So a jump that is taken back changes
 * nothing, and a correction is followed.
 */
export function withSteadyClock(world: World): World {
  let offsetMs = world.nowMs() - world.monotonicMs();
  let jump: { readonly offsetMs: number; readonly sinceMs: number } | undefined;
  const follow = (seenMs: number) => {
    offsetMs = seenMs;
    jump = undefined;
  };
  return {
    ...world,
    nowMs: () => {
      const monotonicMs = world.monotonicMs();
      const seenMs = world.nowMs() - monotonicMs;
      if (Math.abs(seenMs - offsetMs) < STEP_MS) follow(seenMs);
      else if (jump === undefined || Math.abs(seenMs - jump.offsetMs) >= STEP_MS)
        jump = { offsetMs: seenMs, sinceMs: monotonicMs };
      else if (monotonicMs - jump.sinceMs >= SETTLE_MS) follow(seenMs);
      return Math.round(monotonicMs + offsetMs);
    },
  };
}
