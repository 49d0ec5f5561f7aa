/** Creates the log and its clock, by which processes share what they learned. */
import type { Migration } from '../../store.ts';

export const sharedLearning: Migration = {
  id: 70,
  name: 'shared-learning',
  isExpansion: true,
  statements: [
    // What each process has learned in one second, for the other processes. The clock orders the rows by their commits.
    `CREATE TABLE shared_log (
      sequence {INT} NOT NULL PRIMARY KEY,
      process {TEXT} NOT NULL,
      number {INT} NOT NULL,
      written_at_ms {INT} NOT NULL,
      content {BLOB} NOT NULL,
      UNIQUE (process, number)
    )`,
    'CREATE TABLE shared_clock (id {INT} NOT NULL PRIMARY KEY, sequence {INT} NOT NULL)',
    'INSERT INTO shared_clock (id, sequence) VALUES (1, 0)',
    // The position up to which the log is part of a saved state.
    'ALTER TABLE live_states ADD COLUMN sequence {INT} NOT NULL DEFAULT 0',
  ],
};
