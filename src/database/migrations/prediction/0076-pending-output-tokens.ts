/** Adds the length of an answer to requests whose dispatch is not known yet. */
import type { Migration } from '../../store.ts';

/** An answer that is reported before its dispatch: its time per token counts by its length once both are known. */
export const pendingOutputTokens: Migration = {
  id: 76,
  name: 'pending-output-tokens',
  isExpansion: true,
  statements: ['ALTER TABLE pending_requests ADD COLUMN output_tokens {INT}'],
};
