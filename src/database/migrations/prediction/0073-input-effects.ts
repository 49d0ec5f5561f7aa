/** Creates the table of effects of inputs, one row for a model. */
import type { Migration } from '../../store.ts';

/** What the inputs of each served version do to its predictions, as one process computed it for all: one row a model. */
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
