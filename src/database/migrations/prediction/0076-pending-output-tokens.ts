/** Adds the length of an answer to requests whose dispatch is not known yet. */
import type { Migration } from '../../store.ts';

/** The length of an answer that is reported before its dispatch: it weighs the time per token once both are known. */
export const pendingOutputTokens: Migration = {
  id: 76,
  name: 'pending-output-tokens',
  isExpansion: true,
  statements: ['ALTER TABLE pending_requests ADD COLUMN output_tokens {INT}'],
};
