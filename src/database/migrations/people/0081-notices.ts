/** Creates the tables of the last notice of each cause, and of people who want no notices. */
import type { Migration } from '../../store.ts';

export const notices: Migration = {
  id: 81,
  name: 'notices',
  isExpansion: true,
  statements: [
    `CREATE TABLE notices (
       cause {TEXT} NOT NULL PRIMARY KEY,
       state {TEXT} NOT NULL,
       sent_at_ms {INT} NOT NULL
     )`,
    `CREATE TABLE notice_choices (
       user_id {TEXT} NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
       off_since_ms {INT} NOT NULL
     )`,
  ],
};
