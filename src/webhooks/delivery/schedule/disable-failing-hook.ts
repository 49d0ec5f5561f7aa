/** Decides when a hook is disabled: after 410 Gone, or after 20 failed attempts in a row over at least five days. */
import type { Outcome } from './attempt-outcome.ts';

/** A hook is disabled only if its attempts have failed for at least this long. */
export const DISABLE_AFTER_MS = 5 * 24 * 3600 * 1000;
/** How many attempts in a row must have failed before a hook is disabled. */
export const DISABLE_AFTER_FAILS = 20;

/** Counts failures since the last accepted attempt, by which a hook is disabled. */
export interface HookHealth {
  /** Failed attempts since the last that was accepted. */
  readonly fails: number;
  readonly failingSinceMs: number | null;
}

export const HEALTHY: HookHealth = { fails: 0, failingSinceMs: null };

export function updateHealth(health: HookHealth, outcome: Outcome, nowMs: number): HookHealth {
  if (outcome.kind === 'accepted') return HEALTHY;
  return { fails: health.fails + 1, failingSinceMs: health.failingSinceMs ?? nowMs };
}

/** Why a hook is disabled at once. */
export const GONE = 'The receiver answered 410 Gone';

/** Why the hook must be disabled now, if it must. */
export function findDisableReason(health: HookHealth, outcome: Outcome, nowMs: number): string | undefined {
  if (outcome.kind === 'gone') return GONE;
  if (health.fails < DISABLE_AFTER_FAILS || health.failingSinceMs === null) return undefined;
  if (nowMs - health.failingSinceMs < DISABLE_AFTER_MS) return undefined;
  return `All ${health.fails} attempts since ${new Date(health.failingSinceMs).toISOString()} have failed`;
}
