/** Creates the table of drift alarms, one row for a model and hour. */
import type { Migration } from '../../store.ts';

/** When a model was found not to fit, one row an hour: a drifting model raises alarms again and again. */
export const driftAlarms: Migration = {
  id: 65,
  name: 'drift-alarms',
  isExpansion: true,
  statements: [
    `CREATE TABLE drift_alarms (
       target_model {TEXT} NOT NULL,
       hour {INT} NOT NULL,
       target {TEXT} NOT NULL,
       cause {TEXT} NOT NULL,
       alarms {INT} NOT NULL,
       last_at_ms {INT} NOT NULL,
       PRIMARY KEY (target_model, hour, target, cause)
     )`,
    'CREATE INDEX drift_alarms_by_hour ON drift_alarms (hour)',
  ],
};
