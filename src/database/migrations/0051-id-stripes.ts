/** Creates the table of the ranges of row ids that processes have reserved. */
import { ID_EPOCH_MS, IDS_PER_MS, STRIPE_COUNT } from '../ids.ts';
import type { Migration } from '../store.ts';

/** The reserved ranges of row ids. All begin after the newest id that was made without a reservation. */
export const idStripes: Migration = {
  id: 51,
  name: 'id_stripes',
  statements: [
    `CREATE TABLE id_stripes (
       stripe {INT} NOT NULL PRIMARY KEY,
       claimed_until_ms {INT} NOT NULL
     )`,
    `INSERT INTO id_stripes (stripe, claimed_until_ms)
     WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${STRIPE_COUNT - 1}),
       newest (id) AS (SELECT MAX(id) FROM events UNION ALL SELECT MAX(delivery_id) FROM delivery_contents
                       UNION ALL SELECT MAX(id) FROM samples)
     SELECT n, ${ID_EPOCH_MS} + 1 + COALESCE((SELECT MAX(id) FROM newest), 0) / ${IDS_PER_MS} FROM numbers`,
  ],
};
