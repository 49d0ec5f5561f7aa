/** Adds the history of a server, and the tokens of an answer, to samples. */
import type { Migration } from '../../store.ts';

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

/** How long an answer was; null is unknown, as in every sample of before. The time a token of a short one says little. */
export const sampleTokens: Migration = {
  id: 67,
  name: 'sample-tokens',
  isExpansion: true,
  statements: ['ALTER TABLE samples ADD COLUMN output_tokens {INT}'],
};
