/** Adds when each state of a notice's cause was last sent. */
import type { Migration } from '../../store.ts';

/**
 * When each state of a cause was last sent, so that the limit of one notice an hour for a begin does not delay the notice of its end.
 * Earlier programs keep only the time of the last notice.
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
