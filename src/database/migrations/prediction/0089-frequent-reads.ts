/** Adds the indexes that the reads of each minute and each ten seconds of prediction need. */
import type { Migration } from '../../store.ts';

export const frequentReads: Migration = {
  id: 89,
  name: 'frequent-reads',
  isExpansion: true,
  statements: [
    // For merging: merged rows are older than unmerged ones, and by far the most.
    'CREATE INDEX accuracy_sums_to_merge ON accuracy_sums (kind, minutes, start_ms)',
    'CREATE INDEX error_counts_to_merge ON error_counts (kind, minutes, start_ms)',
    'CREATE INDEX accuracy_counts_to_merge ON accuracy_counts (minutes, start_ms)',
    // Without it, SQLite reads each whole state to get to the column after it.
    'CREATE INDEX live_states_times ON live_states (target_model, saved_at_ms, sequence)',
  ],
};
