/** Adds the history of a server, and the tokens of an answer, to samples. */
import type { Migration } from '../../store.ts';

/** The known history of a server when the prediction was requested; null is missing, as in every earlier sample. */
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

/** The length of an answer in tokens; null is unknown, as in every earlier sample. The time per token of a short answer is imprecise. */
export const sampleTokens: Migration = {
  id: 67,
  name: 'sample-tokens',
  isExpansion: true,
  statements: ['ALTER TABLE samples ADD COLUMN output_tokens {INT}'],
};
