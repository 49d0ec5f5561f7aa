/** Adds when each state of a notice's cause was last sent. */
import type { Migration } from '../../store.ts';

/**
 * When each state of a cause was last sent: the end of a trouble does not wait for the hour of its beginning. Programs before this
 * one keep the time of the last notice alone.
 */
export const noticeTimes: Migration = {
  id: 86,
  name: 'notice-times',
  isExpansion: true,
  statements: [
    ...['notice_times', 'published_notice_times'].map(
      (table) => `CREATE TABLE ${table} (
         cause {TEXT} NOT NULL,
         state {TEXT} NOT NULL,
         sent_at_ms {INT} NOT NULL,
         PRIMARY KEY (cause, state)
       )`,
    ),
    'INSERT INTO notice_times (cause, state, sent_at_ms) SELECT cause, state, sent_at_ms FROM notices',
    'INSERT INTO published_notice_times (cause, state, sent_at_ms) SELECT cause, state, sent_at_ms FROM published_notices',
  ],
};
