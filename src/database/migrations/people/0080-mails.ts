/** Creates the table of mails that wait to be sent. */
import type { Migration } from '../../store.ts';

export const mails: Migration = {
  id: 80,
  name: 'mails',
  isExpansion: true,
  statements: [
    `CREATE TABLE mails (
       id {TEXT} NOT NULL PRIMARY KEY,
       content {BLOB} NOT NULL,
       due_at_ms {INT} NOT NULL,
       expires_at_ms {INT} NOT NULL,
       attempts {INT} NOT NULL
     )`,
    'CREATE INDEX mails_by_due ON mails (due_at_ms, id)',
  ],
};
