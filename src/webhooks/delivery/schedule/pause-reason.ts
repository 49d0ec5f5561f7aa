/** Lists why nothing is sent to a hook for a while, as stored and as the API shows it. */
export const PAUSE_REASONS = ['failures', 'no_connection', 'retry_after'] as const;
export type PauseReason = (typeof PAUSE_REASONS)[number];

/**
 * Stored in the column of the reason when a pause for `no_connection` has ended early: another process could connect to the
 * origin. The worker that reads the row counts that as an answered probe of its own breaker. Never shown.
 */
export const ORIGIN_RECONNECTED = 'reconnected';

export interface Pause {
  /** The first of the pauses that follow each other began at this time. */
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly reason: PauseReason;
}
