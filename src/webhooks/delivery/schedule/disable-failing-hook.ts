/** Disables a hook after 410 Gone, or after many failed attempts in a row over several days. */
import type { Outcome } from './attempt-outcome.ts';

/** A hook is disabled after this many failed attempts in a row that reach over this time. */
export const DISABLE_AFTER_MS = 5 * 24 * 3600 * 1000;
export const DISABLE_AFTER_FAILS = 20;

/** Failures since the last accepted attempt, which decide whether the hook is disabled. */
export interface HookHealth {
  /** Failed attempts since the last that was accepted. */
  readonly fails: number;
  readonly failingSinceMs: number | null;
}

export function updateHealth(health: HookHealth, outcome: Outcome, nowMs: number): HookHealth {
  if (outcome.kind === 'accepted') return { fails: 0, failingSinceMs: null };
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
