/**
 * Counts samples by model, and those that no training has seen yet. Every query is an index lookup or a page of models, because
 * it runs in a thread that serves calls.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { type Store, statement } from '../../database/store.ts';

/** One lookup in the index for each model, however many samples it has. $1: the model before the first, $2: how many. */
const SAMPLED_MODELS = `WITH RECURSIVE sampled (target_model, position) AS (
     SELECT MIN(target_model), 1 FROM samples WHERE target_model > $1
     UNION ALL
     SELECT (SELECT MIN(s.target_model) FROM samples s WHERE s.target_model > sampled.target_model), position + 1
     FROM sampled WHERE sampled.target_model IS NOT NULL AND position < $2)`;
const sampledModelsSql = statement<{ target_model: string }>(
  'sample-models',
  `${SAMPLED_MODELS} SELECT target_model FROM sampled WHERE target_model IS NOT NULL ORDER BY target_model`,
);
// Only fresh samples are counted: a join would read every kept sample, every two seconds, in a serving thread.
const countByModelSql = statement<{
  target_model: string;
  fresh: number;
  last_id: number;
  last_training_ms: number | null;
}>(
  'sample-count-fresh',
  `${SAMPLED_MODELS}
   SELECT m.target_model, t.at_ms AS last_training_ms,
     (SELECT COUNT(*) FROM samples s
      WHERE s.target_model = m.target_model AND s.id > COALESCE(t.last_sample_id, 0)) AS fresh,
     (SELECT MAX(s.id) FROM samples s WHERE s.target_model = m.target_model) AS last_id
   FROM sampled m LEFT JOIN trainings t ON t.target_model = m.target_model WHERE m.target_model IS NOT NULL
   ORDER BY m.target_model`,
);
const countOfModelSql = statement<{
  target_model: string;
  fresh: number;
  last_id: number | null;
  last_training_ms: number | null;
}>(
  'sample-count-fresh-of-model',
  `SELECT m.target_model, t.at_ms AS last_training_ms,
     (SELECT COUNT(*) FROM samples s
      WHERE s.target_model = m.target_model AND s.id > COALESCE(t.last_sample_id, 0)) AS fresh,
     (SELECT MAX(s.id) FROM samples s WHERE s.target_model = m.target_model) AS last_id
   FROM (SELECT CAST($1 AS TEXT) AS target_model) m LEFT JOIN trainings t ON t.target_model = m.target_model`,
);
const saveTrainingSql = statement(
  'training-save',
  `INSERT INTO trainings (target_model, last_sample_id, at_ms, outcome) VALUES ($1, $2, $3, $4)
   ON CONFLICT (target_model) DO UPDATE SET last_sample_id = excluded.last_sample_id, at_ms = excluded.at_ms,
     outcome = excluded.outcome`,
);

/** Samples that no training has seen yet. */
export interface FreshSamples {
  readonly targetModel: string;
  readonly count: number;
  readonly lastId: number;
  readonly lastTrainingMs: number | undefined;
}

/** How many models one query reads: it runs in a serving thread, which answers calls between two queries. */
const MODELS_OF_A_PAGE = 64;

export interface FreshSamplesPage {
  readonly fresh: readonly FreshSamples[];
  /** Where the next page begins; undefined when no model is left. */
  readonly last: string | undefined;
}

/** A page of the models whose names come after `after`; '' is before the first. */
export async function listFreshSamples(store: Store, after = ''): Promise<FreshSamplesPage> {
  const rows = await store.read(countByModelSql, [after, MODELS_OF_A_PAGE]);
  const fresh = rows
    .filter((row) => row.fresh > 0)
    .map((row) => ({
      targetModel: row.target_model,
      count: row.fresh,
      lastId: row.last_id,
      lastTrainingMs: row.last_training_ms ?? undefined,
    }));
  return { fresh, last: rows.length < MODELS_OF_A_PAGE ? undefined : rows.at(-1)!.target_model };
}

/** Undefined without samples. */
export async function readFreshSamples(store: Store, targetModel: string): Promise<FreshSamples | undefined> {
  const [row] = await store.read(countOfModelSql, [targetModel]);
  if (row === undefined || row.last_id === null || row.fresh === 0) return undefined;
  return { targetModel, count: row.fresh, lastId: row.last_id, lastTrainingMs: row.last_training_ms ?? undefined };
}

export interface TrainingRecord {
  readonly targetModel: string;
  readonly lastSampleId: number;
  readonly nowMs: number;
  readonly outcome: string;
}

export async function recordTraining(store: Store, record: TrainingRecord): Promise<void> {
  await store.write(saveTrainingSql, [record.targetModel, record.lastSampleId, record.nowMs, record.outcome]);
}

/** Lists the models that have samples, by name, in pages between which calls are answered. */
export async function* listSampledModels(store: Store): AsyncGenerator<string> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const rows: readonly { target_model: string }[] = await store.read(sampledModelsSql, [after, MODELS_OF_A_PAGE]);
    for (const row of rows) yield row.target_model;
    after = rows.length < MODELS_OF_A_PAGE ? undefined : rows.at(-1)!.target_model;
    await yieldToCalls();
  }
}
