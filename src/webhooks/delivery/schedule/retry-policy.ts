/** Decides when a failed delivery is tried again, and after how many attempts it is given up (backoff, `Retry-After`). */
import { readForeignTimeMs } from '../../events/foreign-time.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Waits after the first, second, … failed attempt, about three days in all. After the last wait one more attempt is made. */
const DELAYS_MS: readonly number[] = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];

export const MAX_ATTEMPTS = DELAYS_MS.length + 1;

const JITTER = 0.2;
const MAX_EXTRA_MS = HOUR_MS;

export interface RetryMoment {
  /** The number of the failed attempt, from 1. */
  readonly attempt: number;
  /** Uniform in [0, 1): spreads retries of deliveries that failed together. */
  readonly random: number;
  /** The wait that the receiver requested, from the end of the attempt. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * The wait before the next attempt, or undefined after the last. A longer wait that the receiver requests is honoured, but it adds at
 * most an hour and at most doubles the planned wait.
 */
export function planRetryMs({ attempt, random, retryAfterMs = 0 }: RetryMoment): number | undefined {
  const delayMs = DELAYS_MS[attempt - 1];
  if (delayMs === undefined) return undefined;
  const plannedMs = Math.round(delayMs * (1 - JITTER + 2 * JITTER * random));
  return Math.min(Math.max(plannedMs, retryAfterMs), 2 * plannedMs, plannedMs + MAX_EXTRA_MS);
}

/** The longest wait after this number of failed attempts; 0 when no attempt follows. */
export function longestRetryMs(attempt: number): number {
  return planRetryMs({ attempt, random: 1, retryAfterMs: Number.POSITIVE_INFINITY }) ?? 0;
}

/** `Retry-After` of RFC 9110 §10.2.3: seconds or a date. A value that cannot be parsed is ignored. */
export function parseRetryAfterMs(value: string | undefined, nowMs: number): number | undefined {
  const text = value?.trim() ?? '';
  if (/^\d{1,15}$/.test(text)) return Number(text) * SECOND_MS;
  if (!/^[A-Za-z]{3,9},? /.test(text)) return undefined;
  const atMs = readForeignTimeMs(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
