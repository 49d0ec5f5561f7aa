/** Creates the table of requests from traces that wait for overlapping requests to end. */
import type { Migration } from '../../store.ts';

/** Requests from traces: they wait until the requests that overlap them have ended, and then count as their load. */
export const waitingSpans: Migration = {
  id: 61,
  name: 'waiting-spans',
  statements: [
    `CREATE TABLE waiting_spans (
      request_id {TEXT} NOT NULL PRIMARY KEY,
      target_model {TEXT} NOT NULL,
      server {TEXT} NOT NULL,
      start_ms {REAL} NOT NULL,
      first_token_ms {REAL} NOT NULL,
      end_ms {REAL} NOT NULL,
      input_tokens {INT} NOT NULL,
      cached_tokens {INT} NOT NULL,
      output_tokens {INT} NOT NULL,
      is_learned {INT} NOT NULL
    )`,
    // Requests to learn next, ordered by their start.
    'CREATE INDEX waiting_spans_by_start ON waiting_spans (is_learned, start_ms)',
    // Requests that were running at a start, and requests that no later one can overlap.
    'CREATE INDEX waiting_spans_by_end ON waiting_spans (end_ms)',
  ],
};
