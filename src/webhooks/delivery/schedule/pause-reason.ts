/** Lists the reasons for a pause of a hook, as stored and as the API shows them. */
export const PAUSE_REASONS = ['failures', 'no_connection', 'retry_after'] as const;
export type PauseReason = (typeof PAUSE_REASONS)[number];

/**
 * Stored in place of the reason after a pause for `no_connection` ended early, because another process could connect to the origin.
 * The worker that reads the row counts that as a successful probe of its own breaker. Never shown.
 */
export const ORIGIN_RECONNECTED = 'reconnected';

/**
 * Stored in the column of the reason when a person has ended a pause for `no_connection`. The worker that reads the row ends the pause
 * of its own breaker of the origin too, so that the next attempt is the probe. Never shown.
 */
export const PROBE_REQUESTED = 'requested';

export interface Pause {
  /** When the first of several consecutive pauses began. */
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly reason: PauseReason;
}
