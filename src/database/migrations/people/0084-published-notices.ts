/** Creates the table of notices that were published as events. */
import type { Migration } from '../../store.ts';

/**
 * The last notice of each cause that was published as an event, separate from mailed ones. Earlier programs kept one record for
 * both, so an open trouble was published already, and its end is still to be published.
 */
export const publishedNotices: Migration = {
  id: 84,
  name: 'published-notices',
  isExpansion: true,
  statements: [
    `CREATE TABLE published_notices (
       cause {TEXT} NOT NULL PRIMARY KEY,
       state {TEXT} NOT NULL,
       sent_at_ms {INT} NOT NULL
     )`,
    `INSERT INTO published_notices (cause, state, sent_at_ms)
     SELECT cause, state, sent_at_ms FROM notices WHERE state <> 'fine' AND cause NOT LIKE 'published:%'`,
  ],
};
