import type { Migration } from '../store.ts';

/** How long an answer was; null is unknown, as in every sample of before. The time a token of a short one says little. */
export const sampleTokens: Migration = {
  id: 67,
  name: 'sample-tokens',
  isExpansion: true,
  statements: ['ALTER TABLE samples ADD COLUMN output_tokens {INT}'],
};
