/**
 * Defines the states of a delivery, and decides the next one after an attempt: succeeded, pending, dead, blocked.
 *
 * A delivery is sent at least once. After a crash, or when the lease of its shard ends during an attempt, another worker may
 * send it again, with the same UUID.
 *
 * ```
 * pending ─picked→ in flight ─2xx→ succeeded
 *    ▲              │ ├─ failure, n < max ──→ pending (due = now + backoff)
 *    │              │ ├─ failure, n = max ──→ dead
 *    │              │ ├─ 410 Gone ─────────→ dead, and the hook is disabled
 *    │              │ ├─ address refused ──→ blocked
 *    └ lease ended ─┘ └─ stop requested: the attempt finishes; the stop itself never counts as a failure
 * pending ─hook disabled→ held ─enabled→ pending (or expired after 7 days)      pending or held ─hook deleted→ canceled
 * ```
 * Two of these states are never written into a delivery's row. `in flight` follows from the lease of the hook queue's shard: a write at
 * the beginning of each attempt would double the writes. `held` is a column of the hook queue: one update holds or releases a hook
 * with a million deliveries.
 */
import type { Outcome } from './attempt-outcome.ts';
import { MAX_ATTEMPTS, planRetryMs } from './retry-policy.ts';

export const STORED_STATES = ['pending', 'succeeded', 'dead', 'blocked', 'expired', 'canceled'] as const;
/** The states in a delivery's row. */
export type StoredState = (typeof STORED_STATES)[number];

/** The states that people see. */
export const DELIVERY_STATES = [...STORED_STATES, 'held'] as const;
/** A delivery expires after it was held for this long by a disabled webhook. */
export const HOLD_MS = 7 * 24 * 3600 * 1000;
/**
 * A delivery is deleted this long after its creation, even if a redelivery ended only days ago. One that is still pending stays until
 * it has ended.
 */
export const KEEP_LOG_MS = 30 * 24 * 3600 * 1000;
export interface NextStep {
  readonly state: 'pending' | 'succeeded' | 'dead' | 'blocked';
  /** When the next attempt is due, if the delivery is pending. */
  readonly dueAtMs?: number;
}

export interface AttemptMoment {
  /** The number of the attempt in the present schedule, from 1; a redelivery begins a new schedule. */
  readonly attempt: number;
  readonly nowMs: number;
  readonly random: number;
}

export function nextStep(outcome: Outcome, { attempt, nowMs, random }: AttemptMoment): NextStep {
  switch (outcome.kind) {
    case 'accepted':
      return { state: 'succeeded' };
    case 'gone':
      return { state: 'dead' };
    case 'blocked':
      return { state: 'blocked' };
    case 'refused':
    case 'unreachable': {
      const retryAfterMs = outcome.kind === 'refused' ? outcome.retryAfterMs : undefined;
      const delayMs = attempt >= MAX_ATTEMPTS ? undefined : planRetryMs({ attempt, random, retryAfterMs });
      return delayMs === undefined ? { state: 'dead' } : { state: 'pending', dueAtMs: nowMs + delayMs };
    }
  }
}
