/** Creates the tables of live accuracy: errors and coverage of served predictions by period. */
import type { Migration } from '../../store.ts';

/** The accuracy of predictions, kept for 30 days: each process writes sums of periods, which are merged later. */
export const liveAccuracy: Migration = {
  id: 71,
  name: 'live-accuracy',
  isExpansion: true,
  statements: [
    // `process` is empty once the rows of all processes are merged. `version` is −1 for sums over all versions.
    `CREATE TABLE accuracy_sums (
       target_model {TEXT} NOT NULL,
       start_ms {INT} NOT NULL,
       minutes {INT} NOT NULL,
       process {TEXT} NOT NULL,
       kind {TEXT} NOT NULL,
       part {TEXT} NOT NULL,
       target {TEXT} NOT NULL,
       version {INT} NOT NULL,
       last_ms {INT} NOT NULL,
       times {INT} NOT NULL,
       covered {INT} NOT NULL,
       covered_by_median {INT} NOT NULL,
       below_1 {INT} NOT NULL,
       below_2 {INT} NOT NULL,
       below_3 {INT} NOT NULL,
       below_5 {INT} NOT NULL,
       below_7 {INT} NOT NULL,
       below_10 {INT} NOT NULL,
       below_15 {INT} NOT NULL,
       below_20 {INT} NOT NULL,
       below_30 {INT} NOT NULL,
       below_50 {INT} NOT NULL,
       below_100 {INT} NOT NULL,
       larger {INT} NOT NULL,
       size {REAL} NOT NULL,
       error {REAL} NOT NULL,
       miss_ms {REAL} NOT NULL,
       observed_ms {REAL} NOT NULL,
       PRIMARY KEY (target_model, start_ms, minutes, process, kind, part, target, version)
     )`,
    // For the figures of all models, for merging and for deletion.
    'CREATE INDEX accuracy_sums_by_time ON accuracy_sums (kind, start_ms)',
    // How many predicted times had an error of this size (ratio) at this load (axis and load_range); the bucket edges are in the program.
    `CREATE TABLE accuracy_counts (
       target_model {TEXT} NOT NULL,
       start_ms {INT} NOT NULL,
       minutes {INT} NOT NULL,
       process {TEXT} NOT NULL,
       target {TEXT} NOT NULL,
       version {INT} NOT NULL,
       axis {INT} NOT NULL,
       load_range {INT} NOT NULL,
       ratio {INT} NOT NULL,
       times {INT} NOT NULL,
       PRIMARY KEY (target_model, start_ms, minutes, process, target, version, axis, load_range, ratio)
     )`,
    'CREATE INDEX accuracy_counts_by_time ON accuracy_counts (start_ms)',
  ],
};
