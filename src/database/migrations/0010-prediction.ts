import type { Migration } from '../store.ts';

export const prediction: Migration = {
  id: 10,
  name: 'prediction',
  statements: [
    // Versions are never changed: a promotion points at one.
    `CREATE TABLE model_versions (
      name {TEXT} NOT NULL,
      version {INT} NOT NULL,
      parent_version {INT},
      created_at_ms {INT} NOT NULL,
      checksum {TEXT} NOT NULL,
      size_bytes {INT} NOT NULL,
      lineage {TEXT} NOT NULL,
      file {BLOB} NOT NULL,
      PRIMARY KEY (name, version)
    )`,
    // One row a name: the next version, and which one is served. Gone versions keep their number.
    `CREATE TABLE models (
      name {TEXT} NOT NULL PRIMARY KEY,
      last_version {INT} NOT NULL,
      promoted_version {INT},
      promoted_at_ms {INT}
    )`,
    // What was served when, newest last. A rollback undoes the newest that is not undone yet, and serves the one before.
    `CREATE TABLE model_promotions (
      name {TEXT} NOT NULL,
      number {INT} NOT NULL,
      version {INT} NOT NULL,
      at_ms {INT} NOT NULL,
      reason {TEXT} NOT NULL,
      undone_at_ms {INT},
      PRIMARY KEY (name, number)
    )`,
  ],
};
