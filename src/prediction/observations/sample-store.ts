/**
 * Observed requests as the trainer reads them. Rows are only appended; now and then a model's are thinned: the newest
 * stay, and of older ones the newest few of each load class and server, so that a busy server or a common load cannot
 * push out what is rare.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  type Row,
  type SqlValue,
  type Store,
  statement,
} from '../../database/store.ts';
import { exactSteps, renderInsertRows, wideStatement } from '../../database/value-rows.ts';
import { METRIC_COLUMNS, METRIC_FIELDS } from '../schema/columns.ts';
import { fillMetrics, type MetricName } from '../schema/input-fields.ts';
import type { Observation } from '../schema/observation.ts';
import { loadClassOf } from './load-class.ts';

interface SampleRow extends Readonly<Record<MetricName, number>> {
  readonly id: number;
  readonly server_ip: string;
  readonly pod_type: string;
  readonly at_ms: number;
  readonly since_first_token_ms: number | null;
  readonly first_token_gap_ms: number | null;
  readonly waiting_tokens: number | null;
  readonly oldest_waiting_ms: number | null;
  readonly expected_wait_ms: number | null;
  readonly since_dispatch_ms: number | null;
  readonly since_earlier_dispatch_ms: number | null;
  readonly ttft_ms: number | null;
  readonly tpot_ms: number | null;
  readonly output_tokens: number | null;
}

/** What was known of the server's past, in the order of `HISTORY_COLUMNS`. */
const HISTORY_FIELDS = [
  'since_first_token_ms',
  'first_token_gap_ms',
  'waiting_tokens',
  'oldest_waiting_ms',
  'expected_wait_ms',
  'since_dispatch_ms',
  'since_earlier_dispatch_ms',
] as const satisfies readonly (keyof SampleRow)[];

const KEYS = ['id', 'target_model', 'stratum'];
/** As they are read and written. */
const COLUMNS = [
  'server_ip',
  'pod_type',
  'at_ms',
  ...METRIC_FIELDS,
  'ttft_ms',
  'tpot_ms',
  ...HISTORY_FIELDS,
  'output_tokens',
];
const SAMPLE_COLUMNS = [...KEYS, ...COLUMNS].join(', ');
const COLUMN_COUNT = KEYS.length + COLUMNS.length;
const insertSample = statement(
  'sample-insert',
  `INSERT INTO samples (${SAMPLE_COLUMNS})
   VALUES (${Array.from({ length: COLUMN_COUNT }, (_, column) => `$${column + 1}`).join(', ')})`,
);
const insertSamples = wideStatement<Row>(
  'sample-insert-many',
  (width) => `INSERT INTO samples (${SAMPLE_COLUMNS}) VALUES ${renderInsertRows(COLUMN_COUNT, width)}`,
);
const newestSamples = statement<SampleRow>(
  'sample-newest',
  `SELECT id, ${COLUMNS.join(', ')} FROM samples WHERE target_model = $1 ORDER BY id DESC LIMIT $2`,
);
// Where the newest begin; no row when there are not that many.
const firstOfNewest = statement<{ id: number }>(
  'sample-first-of-newest',
  'SELECT id FROM samples WHERE target_model = $1 ORDER BY id DESC LIMIT 1 OFFSET $2',
);
const samplesFrom = statement<SampleRow>(
  'sample-from',
  `SELECT id, ${COLUMNS.join(', ')} FROM samples WHERE target_model = $1 AND id >= $2 ORDER BY id LIMIT $3`,
);
/** One lookup in the index for each model, however many samples it has. $1: the model before the first, $2: how many. */
const SAMPLED_MODELS = `WITH RECURSIVE sampled (target_model, position) AS (
     SELECT MIN(target_model), 1 FROM samples WHERE target_model > $1
     UNION ALL
     SELECT (SELECT MIN(s.target_model) FROM samples s WHERE s.target_model > sampled.target_model), position + 1
     FROM sampled WHERE sampled.target_model IS NOT NULL AND position < $2)`;
const sampledModels = statement<{ target_model: string }>(
  'sample-models',
  `${SAMPLED_MODELS} SELECT target_model FROM sampled WHERE target_model IS NOT NULL ORDER BY target_model`,
);
// Only what is fresh is counted: a join would look at every sample that is kept, every two seconds, in a serving thread.
const countByModel = statement<{
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
const countOfModel = statement<{
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
const saveTraining = statement(
  'training-save',
  `INSERT INTO trainings (target_model, last_sample_id, at_ms, outcome) VALUES ($1, $2, $3, $4)
   ON CONFLICT (target_model) DO UPDATE SET last_sample_id = excluded.last_sample_id, at_ms = excluded.at_ms,
     outcome = excluded.outcome`,
);
// Servers take turns within a load class (column `stratum`) (the newest of each, then the second newest of each), so that none is crowded out.
const thinSamples = statement<{ id: number }>(
  'sample-thin',
  `DELETE FROM samples WHERE target_model = $1
     AND id <= (SELECT id FROM samples WHERE target_model = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)
     AND id NOT IN (
       SELECT id FROM (
         SELECT id, of_server, ROW_NUMBER() OVER (PARTITION BY stratum ORDER BY of_server, id DESC) AS of_stratum
         FROM (
           SELECT id, stratum, ROW_NUMBER() OVER (PARTITION BY stratum, server_ip ORDER BY id DESC) AS of_server
           FROM samples WHERE target_model = $1) by_server) ranked
       WHERE of_server <= $3 AND of_stratum <= $4)
   RETURNING id`,
);

const countByLoadClass = statement<{ stratum: number; count: number }>(
  'sample-count-by-stratum',
  'SELECT stratum, COUNT(*) AS count FROM samples WHERE target_model = $1 GROUP BY stratum ORDER BY stratum',
);
export interface Sample {
  readonly id: number;
  readonly observation: Observation & { readonly atMs: number };
}

export function insertSampleStatement(sample: Sample): BoundStatement {
  return { statement: insertSample, parameters: toParameters(sample) };
}

/** Few statements for many rows. */
export function insertSampleStatements(samples: readonly Sample[]): BoundStatement[] {
  return exactSteps(insertSamples, samples.map(toParameters));
}

function toParameters({ id, observation }: Sample): SqlValue[] {
  const { input } = observation;
  return [
    id,
    observation.targetModel,
    loadClassOf(input),
    input.serverIp,
    input.podType,
    Math.round(observation.atMs),
    ...METRIC_COLUMNS.map((name) => input[name]),
    observation.ttftMs ?? null,
    observation.tpotMs ?? null,
    ...HISTORY_FIELDS.map((_, h) => toStored(observation.history?.[h])),
    storeTokens(observation.outputTokens),
  ];
}

/** The newest samples of a model, oldest first. */
export async function listSamples(store: Store, targetModel: string, limit: number): Promise<Sample[]> {
  const rows = await store.read(newestSamples, [targetModel, limit]);
  return rows.reverse().map((row) => ({ id: row.id, observation: toObservation(targetModel, row) }));
}

/** The same, by pages: so many rows at once would keep a serving thread from its calls. */
export async function* readSamplePages(store: Store, targetModel: string, limit: number): AsyncGenerator<Sample[]> {
  const [first] = await store.read(firstOfNewest, [targetModel, limit - 1]);
  let nextId = first?.id ?? 0;
  for (;;) {
    const rows = await store.read(samplesFrom, [targetModel, nextId, ROWS_OF_A_PAGE]);
    if (rows.length > 0) yield rows.map((row) => ({ id: row.id, observation: toObservation(targetModel, row) }));
    if (rows.length < ROWS_OF_A_PAGE) return;
    nextId = rows.at(-1)!.id + 1;
  }
}

const ROWS_OF_A_PAGE = 250;

/** An unknown length is null. */
function storeTokens(tokens: number | undefined): number | null {
  return tokens !== undefined && tokens > 0 ? Math.round(tokens) : null;
}

/** What is missing is null. */
function toStored(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

function toObservation(targetModel: string, row: SampleRow): Sample['observation'] {
  return {
    targetModel,
    atMs: row.at_ms,
    ttftMs: row.ttft_ms ?? undefined,
    tpotMs: row.tpot_ms ?? undefined,
    outputTokens: row.output_tokens ?? undefined,
    history: HISTORY_FIELDS.map((field) => row[field] ?? Number.NaN),
    input: {
      podType: row.pod_type,
      serverIp: row.server_ip,
      ...fillMetrics(({ name }) => row[name]),
    },
  };
}

/** Samples that no training has seen yet. */
export interface FreshSamples {
  readonly targetModel: string;
  readonly count: number;
  readonly lastId: number;
  readonly lastTrainingMs: number | undefined;
}

/** Models that one query looks at: it runs in a serving thread, which answers calls between two of them. */
const MODELS_OF_A_PAGE = 64;

export interface FreshSamplesPage {
  readonly fresh: readonly FreshSamples[];
  /** Where the next page begins; undefined when no model is left. */
  readonly last: string | undefined;
}

/** Of the models behind `after`, by name; '' is before the first. */
export async function listFreshSamples(store: Store, after = ''): Promise<FreshSamplesPage> {
  const rows = await store.read(countByModel, [after, MODELS_OF_A_PAGE]);
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
  const [row] = await store.read(countOfModel, [targetModel]);
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
  await store.write(saveTraining, [record.targetModel, record.lastSampleId, record.nowMs, record.outcome]);
}

export interface SampleLimits {
  /** This many of the newest stay whatever they are. */
  readonly newest: number;
  readonly perServerAndLoadClass: number;
  readonly perLoadClass: number;
}

export interface Thinned {
  readonly removed: number;
  /** The samples that stay, by load class (column `stratum`). */
  readonly kept: readonly { readonly stratum: number; readonly count: number }[];
}

/** Both in the writer: counting so many rows would keep a serving thread from its calls. */
export const thinSamplesProcedure: Procedure<SampleLimits & { readonly targetModel: string }, Thinned> =
  conditionalProcedure(
    import.meta.url,
    'thinSamplesProcedure',
    async (tx, { targetModel, newest, perServerAndLoadClass, perLoadClass }) => {
      const removed = await tx.run(thinSamples, [targetModel, newest, perServerAndLoadClass, perLoadClass]);
      return { removed: removed.length, kept: await tx.run(countByLoadClass, [targetModel]) };
    },
  );

export async function thinModelSamples(store: Store, targetModel: string, limits: SampleLimits): Promise<Thinned> {
  return await store.call(thinSamplesProcedure, { targetModel, ...limits });
}

/** By name, in pages between which calls are answered. */
export async function* listSampledModels(store: Store): AsyncGenerator<string> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const rows: readonly { target_model: string }[] = await store.read(sampledModels, [after, MODELS_OF_A_PAGE]);
    for (const row of rows) yield row.target_model;
    after = rows.length < MODELS_OF_A_PAGE ? undefined : rows.at(-1)!.target_model;
    await yieldToCalls();
  }
}
