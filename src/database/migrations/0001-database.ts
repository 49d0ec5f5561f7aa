/** Creates the tables of the database mechanism itself: topics of changes, and known values that reveal a wrong encryption key. */
import type { Migration } from '../store.ts';

/** The tables of the database mechanism; the table of leases is created earlier, since migrations need a lease. */
export const database: Migration = {
  id: 1,
  name: 'database',
  statements: [
    `CREATE TABLE topics (
       name {TEXT} NOT NULL PRIMARY KEY,
       version {INT} NOT NULL,
       changed_at_ms {INT} NOT NULL
     )`,
    // One row: a known text, encrypted with the first key, so that a wrong key is noticed before it encrypts anything.
    `CREATE TABLE vault_canaries (
       id {INT} NOT NULL PRIMARY KEY,
       sealed {BLOB} NOT NULL
     )`,
  ],
};
