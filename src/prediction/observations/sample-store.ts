/**
 * Stores samples, and thins old ones. The newest are those with the latest times, not those that came last: an old log may be
 * observed today. Rows that were dated by a clock ahead of ours are not among them until their time comes. When enough were
 * added, the samples of a model are thinned: the newest 20,000 always stay. An older row stays only if it is among the newest of
 * its server in its load class, and among the newest of that class when its servers take turns (`SAMPLE_LIMITS`). So a busy
 * server or a common load cannot push out what is rare (stratified sampling).
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  type Store,
  statement,
} from '../../database/store.ts';
import { bindRowsExactly, multiRowInsert, type ValueRow, type ValueType } from '../../database/value-rows.ts';
import { findTpot } from '../schema/answer-certainty.ts';
import { HISTORY_FIELDS, METRIC_COLUMNS, METRIC_FIELDS } from '../schema/columns.ts';
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

type SamplePosition = Pick<SampleRow, 'at_ms' | 'id'>;
type LoadRow = Pick<SampleRow, 'server_ip' | 'at_ms' | 'num_request_waiting' | 'num_request_running'>;

/** Types of the key columns. The column `stratum` is the load class. */
const KEY_TYPES = { id: 'int', target_model: 'text', stratum: 'int' } as const;
/** The columns of a sample, as they are read. */
const COLUMNS = [
  'server_ip',
  'pod_type',
  'at_ms',
  ...METRIC_FIELDS,
  'ttft_ms',
  'tpot_ms',
  ...HISTORY_FIELDS,
  'output_tokens',
] as const;
type Column = (typeof COLUMNS)[number];
const COLUMN_TYPES = Object.fromEntries(COLUMNS.map((name): [string, ValueType] => [name, 'real'])) as Record<
  Column,
  'real'
>;
const SAMPLE_TYPES = { ...KEY_TYPES, ...COLUMN_TYPES, server_ip: 'text', pod_type: 'text' } as const;
const insertSamplesSql = multiRowInsert('sample-insert-many', 'samples', SAMPLE_TYPES);
const newestSamplesSql = statement<SampleRow>(
  'sample-newest',
  `SELECT id, ${COLUMNS.join(', ')} FROM samples
   WHERE target_model = $1 AND at_ms <= $2 ORDER BY at_ms DESC, id DESC LIMIT $3`,
);
const newestLoadsSql = statement<LoadRow>(
  'sample-newest-loads',
  `SELECT server_ip, at_ms, num_request_waiting, num_request_running FROM samples
   WHERE target_model = $1 AND at_ms <= $2 ORDER BY at_ms DESC, id DESC LIMIT $3`,
);
// The row after the $3 newest ones; no result if the model has fewer rows.
const firstOfNewestSql = statement<SamplePosition>(
  'sample-first-of-newest',
  `SELECT at_ms, id FROM samples
   WHERE target_model = $1 AND at_ms <= $2 ORDER BY at_ms DESC, id DESC LIMIT 1 OFFSET $3`,
);
// The row that was added before the last $2 rows.
const firstOfAddedSql = statement<{ id: number }>(
  'sample-first-of-added',
  'SELECT id FROM samples WHERE target_model = $1 ORDER BY id DESC LIMIT 1 OFFSET $2',
);
const samplesFromSql = statement<SampleRow>(
  'sample-from',
  `SELECT id, ${COLUMNS.join(', ')} FROM samples
   WHERE target_model = $1 AND at_ms <= $2 AND (at_ms, id) >= ($3, $4) ORDER BY at_ms, id LIMIT $5`,
);
// Stratified sampling: servers take turns within a load class, the newest sample of each, then the second newest of each, so that
// every server keeps some. Rows that are dated after $5 count as the oldest.
const thinSamplesSql = statement<{ id: number }>(
  'sample-thin',
  `WITH dated AS (
     SELECT id, stratum, server_ip, CASE WHEN at_ms > $5 THEN -1 ELSE at_ms END AS at_ms
     FROM samples WHERE target_model = $1),
   by_server AS (
     SELECT id, at_ms, stratum,
       ROW_NUMBER() OVER (PARTITION BY stratum, server_ip ORDER BY at_ms DESC, id DESC) AS of_server
     FROM dated),
   ranked AS (
     SELECT id, of_server,
       ROW_NUMBER() OVER (ORDER BY at_ms DESC, id DESC) AS of_all,
       ROW_NUMBER() OVER (PARTITION BY stratum ORDER BY of_server, at_ms DESC, id DESC) AS of_stratum
     FROM by_server)
   DELETE FROM samples WHERE id IN (
     SELECT id FROM ranked WHERE of_all > $2 AND (of_server > $3 OR of_stratum > $4))
   RETURNING id`,
);
export interface LoadClassCount {
  readonly load_class: number;
  readonly count: number;
}

const countByLoadClassSql = statement<LoadClassCount>(
  'sample-count-by-stratum',
  'SELECT stratum AS load_class, COUNT(*) AS count FROM samples WHERE target_model = $1 GROUP BY stratum ORDER BY stratum',
);
export interface Sample {
  readonly id: number;
  readonly observation: Observation & { readonly atMs: number };
}

export function insertSampleStatement(sample: Sample): BoundStatement {
  return insertSampleStatements([sample])[0]!;
}

/** Returns few (multi-row) statements for many rows. */
export function insertSampleStatements(samples: readonly Sample[]): BoundStatement[] {
  return bindRowsExactly(insertSamplesSql, samples.map(toRow));
}

function toRow({ id, observation }: Sample): ValueRow<typeof SAMPLE_TYPES> {
  const { input } = observation;
  const metrics = METRIC_COLUMNS.map((name, index) => [METRIC_FIELDS[index], input[name]]);
  const history = HISTORY_FIELDS.map((name, index) => [name, toStored(observation.history?.[index])]);
  return {
    id,
    target_model: observation.targetModel,
    stratum: loadClassOf(input),
    server_ip: input.serverIp,
    pod_type: input.podType,
    at_ms: Math.round(observation.atMs),
    ...(Object.fromEntries(metrics) as Record<MetricName, number>),
    ttft_ms: observation.ttftMs ?? null,
    tpot_ms: observation.tpotMs ?? null,
    ...(Object.fromEntries(history) as Record<(typeof HISTORY_FIELDS)[number], number | null>),
    output_tokens: storeTokens(observation.outputTokens),
  };
}

export interface NewestSamples {
  readonly limit: number;
  /** Rows that are dated more than `MAX_AHEAD_MS` later are left out. If undefined, no row is left out. */
  readonly nowMs?: number;
}

/** Two clocks may differ by this much. */
export const MAX_AHEAD_MS = 60_000;

function findLatestMs(nowMs = Number.MAX_SAFE_INTEGER - MAX_AHEAD_MS): number {
  return Math.floor(nowMs) + MAX_AHEAD_MS;
}

/** The newest samples of a model, oldest first. */
export async function listSamples(
  store: Store,
  targetModel: string,
  { limit, nowMs }: NewestSamples,
): Promise<Sample[]> {
  const rows = await store.read(newestSamplesSql, [targetModel, findLatestMs(nowMs), limit]);
  return rows.reverse().map((row) => ({ id: row.id, observation: toObservation(targetModel, row) }));
}

/** Lists how many requests were under way at the server of each of the newest samples, without their other columns. */
export async function listSampledLoads(
  store: Store,
  targetModel: string,
  { limit, nowMs }: NewestSamples,
): Promise<{ readonly server: string; readonly underWay: number; readonly atMs: number }[]> {
  const rows = await store.read(newestLoadsSql, [targetModel, findLatestMs(nowMs), limit]);
  return rows.map(({ server_ip, at_ms, num_request_waiting, num_request_running }) => ({
    server: server_ip,
    underWay: num_request_waiting + num_request_running,
    atMs: at_ms,
  }));
}

/** The samples of a model as `listSamples` reads them, in pages: reading all rows at once would block the calls of a serving thread. */
export async function* readSamplePages(
  store: Store,
  targetModel: string,
  { limit, nowMs }: NewestSamples,
): AsyncGenerator<Sample[]> {
  const latestMs = findLatestMs(nowMs);
  const [first] = await store.read(firstOfNewestSql, [targetModel, latestMs, limit - 1]);
  let next = first ?? { at_ms: Number.MIN_SAFE_INTEGER, id: 0 };
  for (;;) {
    const rows = await store.read(samplesFromSql, [targetModel, latestMs, next.at_ms, next.id, ROWS_OF_A_PAGE]);
    if (rows.length > 0) yield rows.map((row) => ({ id: row.id, observation: toObservation(targetModel, row) }));
    if (rows.length < ROWS_OF_A_PAGE) return;
    // Reads of SQLite are synchronous: without this, no call would be answered between two pages.
    await yieldToCalls();
    const { at_ms, id } = rows.at(-1)!;
    next = { at_ms, id: id + 1 };
  }
}

const ROWS_OF_A_PAGE = 250;

/** An unknown length is null. */
function storeTokens(tokens: number | undefined): number | null {
  return tokens !== undefined && tokens > 0 ? Math.round(tokens) : null;
}

/** Missing values are null. */
function toStored(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

function toObservation(targetModel: string, row: SampleRow): Sample['observation'] {
  const outputTokens = row.output_tokens ?? undefined;
  return {
    targetModel,
    atMs: row.at_ms,
    ttftMs: row.ttft_ms ?? undefined,
    // An earlier program stored times per token of one-token answers too.
    tpotMs: findTpot(row.tpot_ms ?? undefined, outputTokens),
    outputTokens,
    history: HISTORY_FIELDS.map((field) => row[field] ?? Number.NaN),
    input: {
      podType: row.pod_type,
      serverIp: row.server_ip,
      ...fillMetrics(({ name }) => row[name]),
    },
  };
}

export interface SampleLimits {
  /** This many of the newest rows stay, whatever their load class and server. */
  readonly newest: number;
  readonly perServerAndLoadClass: number;
  readonly perLoadClass: number;
}

/** Rows that are dated ahead of `nowMs` are deleted first. */
export interface Thinning extends SampleLimits, Pick<NewestSamples, 'nowMs'> {}

export interface Thinned {
  readonly removed: number;
  /** The sample that was added last; 0 without samples. */
  readonly lastId: number;
  /** The samples that stay, by load class. */
  readonly kept: readonly LoadClassCount[];
}

/** Deletes and counts in the writer thread: counting all rows would block the calls of a serving thread. */
export const thinSamplesProcedure: Procedure<Thinning & { readonly targetModel: string }, Thinned> =
  conditionalProcedure(
    import.meta.url,
    'thinSamplesProcedure',
    async (tx, { targetModel, newest, perServerAndLoadClass, perLoadClass, nowMs }) => {
      const limits = [newest, perServerAndLoadClass, perLoadClass];
      const removed = await tx.run(thinSamplesSql, [targetModel, ...limits, findLatestMs(nowMs)]);
      const kept = await tx.run(countByLoadClassSql, [targetModel]);
      const [last] = await tx.run(firstOfAddedSql, [targetModel, 0]);
      return { removed: removed.length, kept, lastId: last?.id ?? 0 };
    },
  );

/** The sample of a model that was added last; 0 without samples. */
export async function readLastSampleId(store: Store, targetModel: string): Promise<number> {
  const [last] = await store.read(firstOfAddedSql, [targetModel, 0]);
  return last?.id ?? 0;
}

/** Whether at least `count` samples of a model were added after this one. */
export async function hasNewSamples(
  store: Store,
  targetModel: string,
  { count, lastId }: { readonly count: number; readonly lastId: number },
): Promise<boolean> {
  const [first] = await store.read(firstOfAddedSql, [targetModel, count - 1]);
  return first !== undefined && first.id > lastId;
}

export async function thinModelSamples(store: Store, targetModel: string, thinning: Thinning): Promise<Thinned> {
  return await store.call(thinSamplesProcedure, { targetModel, ...thinning });
}
