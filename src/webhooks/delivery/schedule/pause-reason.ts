/** Why an endpoint is paused; as stored and as the API shows it. */
export const PAUSE_REASONS = ['failures', 'no_connection', 'retry_after'] as const;
export type PauseReason = (typeof PAUSE_REASONS)[number];

/** In place of a reason: another process got an answer from an origin without connections, and the pause is over. */
export const RECONNECTED = 'reconnected';

export interface Pause {
  /** When the first of the pauses that follow each other began. */
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly reason: PauseReason;
}
