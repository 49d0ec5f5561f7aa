/** Follows the machine's clock, but ignores a jump that is reversed within a minute, so that no token, lease or retry ends early. */
import type { World } from './world.ts';

/** Smaller corrections, in milliseconds, are followed at once: clocks are slewed all the time. */
const STEP_MS = 1000;
/** How long a jump of the machine's clock must last until it is accepted. */
const SETTLE_MS = 60_000;
/** A process that has just started, or whose clock has just been set, may be about to have it corrected. */
const TRUSTED_AFTER_MS = 600_000;
/** How much the clocks of two processes, or of one before and after a correction, may differ. */
export const MAX_SKEW_MS = 60_000;

/**
 * Decides whether expired data may be deleted: a clock that is ahead for some minutes after the machine's start, or a jump that is
 * reversed, must not delete data early.
 */
export type IsClockTrusted = () => boolean;

export interface SteadyWorld extends World {
  /** Whether the clock has run without a jump for ten minutes. */
  readonly isClockTrusted: IsClockTrusted;
}

/**
 * A world whose clock does not jump at once. When the machine's clock jumps in either direction, time continues by the monotonic
 * clock; the machine's new time is used once it has lasted for a minute. So a reversed jump changes nothing, and a correction is
 * followed.
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
      // A sweep may be the only reader of this clock, and it reads the time only while the clock is trusted.
      nowMs();
      return jump === undefined && world.monotonicMs() >= trustedFromMs;
    },
  };
}
