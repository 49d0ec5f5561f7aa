/** Follows the clock of the machine, but not a jump that is taken back within a minute: it ends no token, lease or retry early. */
import type { World } from './world.ts';

/** Corrections below this are followed at once: clocks are slewed all the time. */
const STEP_MS = 1000;
/** How long the machine's clock has to stay where it jumped to, until that is believed. */
const SETTLE_MS = 60_000;
/** A process that has just started, or whose clock has just been set, may be about to have it corrected. */
const TRUSTED_AFTER_MS = 600_000;
/** Two processes, or one before and after a correction, may differ by this much. */
export const MAX_SKEW_MS = 60_000;

/**
 * Whether what is old may be deleted: a clock that is ahead for some minutes after the machine's start, or a jump that is
 * taken back, must not delete what is not due.
 */
export type IsClockTrusted = () => boolean;

export interface SteadyWorld extends World {
  /** Whether the clock has gone on without a jump for ten minutes. */
  readonly isClockTrusted: IsClockTrusted;
}

/**
 * A world whose clock does not jump at once. When the machine's clock jumps, in either direction, time goes on by the
 * monotonic clock; the machine's new time counts once it has lasted for a minute. So a jump that is taken back changes
 * nothing, and a correction is followed.
 */
export function withSteadyClock(world: World): SteadyWorld {
  let trustedFromMs = world.monotonicMs() + TRUSTED_AFTER_MS;
  let offsetMs = world.nowMs() - world.monotonicMs();
  let jump: { readonly offsetMs: number; readonly sinceMs: number } | undefined;
  const follow = (seenMs: number) => {
    offsetMs = seenMs;
    jump = undefined;
  };
  const nowMs = (): number => {
    const monotonicMs = world.monotonicMs();
    const seenMs = world.nowMs() - monotonicMs;
    if (Math.abs(seenMs - offsetMs) < STEP_MS) follow(seenMs);
    else if (jump === undefined || Math.abs(seenMs - jump.offsetMs) >= STEP_MS)
      jump = { offsetMs: seenMs, sinceMs: monotonicMs };
    else if (monotonicMs - jump.sinceMs >= SETTLE_MS) {
      follow(seenMs);
      trustedFromMs = monotonicMs + TRUSTED_AFTER_MS;
    }
    return Math.round(monotonicMs + offsetMs);
  };
  return {
    ...world,
    nowMs,
    isClockTrusted: () => {
      // A sweep may be all that reads this clock, and it reads the time only while the clock is trusted.
      nowMs();
      return jump === undefined && world.monotonicMs() >= trustedFromMs;
    },
  };
}
