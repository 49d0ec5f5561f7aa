import type { Migration } from '../store.ts';

/** What was known of a server's past when a request was asked; null is missing, as in every sample of before. */
export const serverHistories: Migration = {
  id: 63,
  name: 'server-histories',
  isExpansion: true,
  statements: [
    'since_first_token_ms',
    'first_token_gap_ms',
    'waiting_tokens',
    'oldest_waiting_ms',
    'expected_wait_ms',
    'since_dispatch_ms',
    'since_earlier_dispatch_ms',
  ].map((column) => `ALTER TABLE samples ADD COLUMN ${column} {REAL}`),
};
