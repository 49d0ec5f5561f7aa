import type { Migration } from '../store.ts';

/** Why and since when an endpoint is paused, which its row kept no word of besides the time until when. */
export const pauses: Migration = {
  id: 54,
  name: 'pauses',
  statements: [
    'ALTER TABLE endpoint_queue ADD COLUMN paused_since_ms {INT}',
    'ALTER TABLE endpoint_queue ADD COLUMN pause_reason {TEXT}',
    'ALTER TABLE endpoint_queue ADD COLUMN openings {INT} NOT NULL DEFAULT 0',
  ],
};
