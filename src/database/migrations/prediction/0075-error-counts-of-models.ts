/** Adds an index for the errors of one model by part and axis. */
import type { Migration } from '../../store.ts';

/** The errors of one model are read for one kind of part and one axis. */
export const errorCountsOfModels: Migration = {
  id: 75,
  name: 'error-counts-of-models',
  isExpansion: true,
  statements: ['CREATE INDEX error_counts_of_model ON error_counts (target_model, kind, axis, start_ms)'],
};
