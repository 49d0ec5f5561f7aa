/** Creates the table of effects of inputs, one row for a model. */
import type { Migration } from '../../store.ts';

/** The effects of the inputs of each served version on its predictions, computed by one process for all: one row for each model. */
export const inputEffects: Migration = {
  id: 73,
  name: 'input-effects',
  isExpansion: true,
  statements: [
    `CREATE TABLE input_effects (
       target_model {TEXT} NOT NULL PRIMARY KEY,
       version {INT} NOT NULL,
       made_at_ms {INT} NOT NULL,
       content {TEXT} NOT NULL
     )`,
  ],
};
