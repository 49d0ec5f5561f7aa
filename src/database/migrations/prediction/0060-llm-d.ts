/** Creates the tables for rows of llm-d whose times are not yet understood. */
import type { Migration } from '../../store.ts';

/** Rows of llm-d's training API that wait until it is known what their times measure. */
export const llmD: Migration = {
  id: 60,
  name: 'llm-d',
  isExpansion: true,
  statements: [
    // What "actual_ttft_ms" measures for a target model: 'unknown', 'first-token' or 'end-to-end'; and how many rows wait.
    `CREATE TABLE llm_d_models (
      target_model {TEXT} NOT NULL PRIMARY KEY,
      measures {TEXT} NOT NULL,
      held_rows {INT} NOT NULL,
      updated_at_ms {INT} NOT NULL
    )`,
    `CREATE TABLE llm_d_held_rows (
      id {INT} NOT NULL PRIMARY KEY,
      target_model {TEXT} NOT NULL,
      observation {TEXT} NOT NULL
    )`,
    'CREATE INDEX llm_d_held_rows_by_model ON llm_d_held_rows (target_model, id)',
  ],
};
