/** Creates the table of errors by load, for each pod type and server. */
import type { Migration } from '../../store.ts';

/** Counts errors by load as `accuracy_counts` does, but separately for each pod type and server. */
export const errorCounts: Migration = {
  id: 74,
  name: 'error-counts',
  isExpansion: true,
  statements: [
    // `kind` is "pod type" or "server", `part` its name. `version` is −1 for counts over all versions.
    `CREATE TABLE error_counts (
       target_model {TEXT} NOT NULL,
       start_ms {INT} NOT NULL,
       minutes {INT} NOT NULL,
       process {TEXT} NOT NULL,
       kind {TEXT} NOT NULL,
       part {TEXT} NOT NULL,
       target {TEXT} NOT NULL,
       version {INT} NOT NULL,
       axis {INT} NOT NULL,
       load_range {INT} NOT NULL,
       ratio {INT} NOT NULL,
       times {INT} NOT NULL,
       PRIMARY KEY (target_model, start_ms, minutes, process, kind, part, target, version, axis, load_range, ratio)
     )`,
    // For merging and for deletion.
    'CREATE INDEX error_counts_by_time ON error_counts (kind, start_ms)',
  ],
};
