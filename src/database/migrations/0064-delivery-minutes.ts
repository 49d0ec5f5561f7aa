/** Creates the table that counts attempts by hook and minute, for the overview. */
import type { Migration } from '../store.ts';

/**
 * Counts attempts by owner and minute, so that an overview of the last hours reads a few rows and not the log. The `below_…`
 * columns count attempts by their duration in milliseconds (a histogram).
 */
export const deliveryMinutes: Migration = {
  id: 64,
  name: 'delivery-minutes',
  isExpansion: true,
  statements: [
    `CREATE TABLE delivery_minutes (
       owner_id {TEXT} NOT NULL,
       minute {INT} NOT NULL,
       accepted {INT} NOT NULL,
       failed {INT} NOT NULL,
       below_10 {INT} NOT NULL,
       below_30 {INT} NOT NULL,
       below_100 {INT} NOT NULL,
       below_300 {INT} NOT NULL,
       below_1000 {INT} NOT NULL,
       below_3000 {INT} NOT NULL,
       below_10000 {INT} NOT NULL,
       longer {INT} NOT NULL,
       PRIMARY KEY (owner_id, minute)
     )`,
    // For the sum over all owners, and for the sweep.
    'CREATE INDEX delivery_minutes_by_time ON delivery_minutes (minute)',
  ],
};
