/** Adds why a hook queue is paused, since when, and how often its breaker opened. */
import type { Migration } from '../store.ts';

/** Stores why a hook queue is paused, since when, and how often its breaker opened. Until now its row had only the end of the pause. */
export const pauses: Migration = {
  id: 54,
  name: 'pauses',
  statements: [
    'ALTER TABLE endpoint_queue ADD COLUMN paused_since_ms {INT}',
    'ALTER TABLE endpoint_queue ADD COLUMN pause_reason {TEXT}',
    'ALTER TABLE endpoint_queue ADD COLUMN openings {INT} NOT NULL DEFAULT 0',
  ],
};
