/** Reads the live accuracy: rows of all processes and periods, added up. */
import { type Row, type SqlValue, type Statement, type Store, statement } from '../../database/store.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';
import { EVERY_VERSION, type SumsKind } from './accuracy-recorder.ts';
import { LONGEST_PERIOD_MS } from './accuracy-store.ts';
import { type AccuracySums, COUNT_COLUMNS, SUM_COLUMNS } from './accuracy-sums.ts';

// A sum of integers is a NUMERIC on PostgreSQL.
const summed = SUM_COLUMNS.map((name, at) =>
  at < COUNT_COLUMNS ? `CAST(SUM(${name}) AS BIGINT) AS ${name}` : `SUM(${name}) AS ${name}`,
).join(', ');
const lastMs = 'MAX(last_ms) AS last_ms';
const step = '(start_ms - start_ms % CAST($2 AS BIGINT))';

type SumsRow = Row & {
  readonly target_model: string;
  readonly part: string;
  readonly target: PredictionTarget;
  readonly version: number;
  readonly step_ms: number;
  readonly last_ms: number;
};

/** The sums of some periods of one part of a model. */
export interface PartSums {
  readonly targetModel: string;
  /** A pod type or a server. */
  readonly part: string;
  readonly target: PredictionTarget;
  readonly version: number;
  readonly startMs: number;
  readonly lastMs: number;
  readonly sums: AccuracySums;
}

function toPartSums(row: SumsRow): PartSums {
  return {
    targetModel: row.target_model,
    part: row.part,
    target: row.target,
    version: row.version,
    startMs: Number(row.step_ms),
    lastMs: Number(row.last_ms),
    sums: Float64Array.from(SUM_COLUMNS, (name) => Number(row[name])),
  };
}

const byPodTypeSql: Statement<SumsRow> = statement(
  'accuracy-by-pod-type',
  `SELECT target_model, part, target, version, ${step} AS step_ms, ${lastMs}, ${summed} FROM accuracy_sums
   WHERE target_model = $3 AND start_ms >= $1 AND kind = 'pod type'
   GROUP BY target_model, part, target, version, ${step} ORDER BY step_ms, part, target, version`,
);
const byModelSql: Statement<SumsRow> = statement(
  'accuracy-by-model',
  `SELECT target_model, '' AS part, target, version, ${step} AS step_ms, ${lastMs}, ${summed} FROM accuracy_sums
   WHERE kind = 'pod type' AND start_ms >= $1 AND start_ms < $3
   GROUP BY target_model, target, version, ${step} ORDER BY target_model, target, version`,
);
const byServerSql: Statement<SumsRow> = statement(
  'accuracy-by-server',
  `SELECT target_model, part, target, version, ${step} AS step_ms, ${lastMs}, ${summed} FROM accuracy_sums
   WHERE target_model = $3 AND start_ms >= $1 AND start_ms < $4 AND kind = 'server'
   GROUP BY target_model, part, target, version, ${step} ORDER BY step_ms, part, target`,
);
const ofServerSql: Statement<SumsRow> = statement(
  'accuracy-of-server',
  `SELECT target_model, part, target, version, ${step} AS step_ms, ${lastMs}, ${summed} FROM accuracy_sums
   WHERE target_model = $3 AND start_ms >= $1 AND kind = 'server' AND part = $4
   GROUP BY target_model, part, target, version, ${step} ORDER BY step_ms, target`,
);
const podTypesBetweenSql: Statement<SumsRow> = statement(
  'accuracy-of-pod-types-between',
  `SELECT target_model, part, target, ${EVERY_VERSION} AS version, start_ms AS step_ms, ${lastMs}, ${summed} FROM accuracy_sums
   WHERE kind = 'pod type' AND start_ms >= $1 AND start_ms < $2 GROUP BY target_model, part, target, start_ms
   ORDER BY step_ms DESC, target_model, part, target LIMIT $3`,
);
const newestByServerSql: Statement<SumsRow> = statement(
  'accuracy-newest-by-server',
  `SELECT target_model, part, target, version, MAX(start_ms) AS step_ms, ${lastMs}, ${summed} FROM accuracy_sums
   WHERE kind = 'server' AND start_ms >= $1 GROUP BY target_model, part, target, version
   ORDER BY last_ms DESC LIMIT 400`,
);

/** A range of time, which has the periods that begin in it. */
export interface TimeRange {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface AccuracyRange {
  readonly targetModel: string;
  readonly fromMs: number;
  /** Periods that begin in the same step are added up; infinity adds up all. */
  readonly stepMs: number;
}

/** A step longer than any range: everything is in one step. */
const ONE_STEP = Number.MAX_SAFE_INTEGER;

async function readSums(store: Store, sql: Statement<SumsRow>, parameters: readonly SqlValue[]): Promise<PartSums[]> {
  return (await store.read(sql, parameters)).map(toPartSums);
}

function toParameters({ targetModel, fromMs, stepMs }: AccuracyRange): SqlValue[] {
  return [fromMs, Math.min(stepMs, ONE_STEP), targetModel];
}

/** The sums of each step by pod type, target and version, the oldest step first. */
export async function listPodTypeSums(store: Store, range: AccuracyRange): Promise<PartSums[]> {
  return await readSums(store, byPodTypeSql, toParameters(range));
}

/** The sums of a model by server and target, over all versions. */
export async function listServerSums(
  store: Store,
  targetModel: string,
  { fromMs, untilMs }: TimeRange,
): Promise<PartSums[]> {
  return await readSums(store, byServerSql, [fromMs, ONE_STEP, targetModel, untilMs]);
}

export async function listSumsOfServer(store: Store, range: AccuracyRange, server: string): Promise<PartSums[]> {
  return await readSums(store, ofServerSql, [...toParameters(range), server]);
}

/** The sums of all models, by target and version. */
export async function listModelSums(store: Store, { fromMs, untilMs }: TimeRange): Promise<PartSums[]> {
  return await readSums(store, byModelSql, [fromMs, ONE_STEP, untilMs]);
}

/** The sums of all models for each period that begins in this time, the newest first. */
export async function listPodTypeSumsBetween(
  store: Store,
  { fromMs, untilMs, limit }: TimeRange & { readonly limit: number },
): Promise<PartSums[]> {
  return await readSums(store, podTypesBetweenSql, [fromMs, untilMs, limit]);
}

/** The servers of all models that were reported last. */
export async function listNewestServerSums(store: Store, fromMs: number): Promise<PartSums[]> {
  return await readSums(store, newestByServerSql, [fromMs]);
}

// Hours are soon merged into six hours, so a period that began before the range may also hold errors within it. The first
// condition is for the index.
const ENDS_LATER = `start_ms >= CAST($2 AS BIGINT) - ${LONGEST_PERIOD_MS} AND start_ms + minutes * 60000 > CAST($2 AS BIGINT)`;

// Older programs wrote `accuracy_counts`, which has no columns for pod type or server.
const countsOfAllSql: Statement<ErrorCount> = statement(
  'error-counts-of-all',
  `SELECT load_range AS "range", ratio, CAST(SUM(times) AS BIGINT) AS times FROM (
     SELECT load_range, ratio, times, version FROM accuracy_counts
     WHERE target_model = $1 AND ${ENDS_LATER} AND target = $3 AND axis = $4
     UNION ALL
     SELECT load_range, ratio, times, version FROM error_counts
     WHERE target_model = $1 AND ${ENDS_LATER} AND target = $3 AND axis = $4 AND kind = 'pod type'
   ) AS counted
   WHERE version = COALESCE($5, version)
   GROUP BY load_range, ratio ORDER BY load_range, ratio`,
);
const countsOfPartSql: Statement<ErrorCount> = statement(
  'error-counts-of-part',
  `SELECT load_range AS "range", ratio, CAST(SUM(times) AS BIGINT) AS times FROM error_counts
   WHERE target_model = $1 AND ${ENDS_LATER} AND target = $3 AND axis = $4 AND kind = $5 AND part = $6
   GROUP BY load_range, ratio ORDER BY load_range, ratio`,
);
const countedPartsSql: Statement<{ readonly kind: SumsKind; readonly part: string }> = statement(
  'error-counts-parts',
  `SELECT DISTINCT kind, part FROM error_counts
   WHERE target_model = $1 AND kind IN ('pod type', 'server') AND axis = 0 AND ${ENDS_LATER} AND target = $3
   ORDER BY kind, part LIMIT 1000`,
);

export interface ErrorCount {
  /** Position among the ranges of the axis: 0 is below its first edge. */
  readonly range: number;
  /** Position among the ranges of observed divided by predicted time: 0 is below the first edge. */
  readonly ratio: number;
  readonly times: number;
}

export interface CountsRange {
  readonly targetModel: string;
  readonly target: PredictionTarget;
  /** Position among the axes. */
  readonly axis: number;
  /** The version that predicted; all versions when absent. */
  readonly version?: number | undefined;
  /** A pod type or a server; all when left out. */
  readonly part?: ErrorPart | undefined;
  /** Periods that end later count as a whole. */
  readonly fromMs: number;
}

export interface ErrorPart {
  readonly kind: SumsKind;
  readonly part: string;
}

export async function listErrorCounts(
  store: Store,
  { targetModel, target, axis, version, part, fromMs }: CountsRange,
): Promise<ErrorCount[]> {
  const parameters = [targetModel, fromMs, target, axis];
  const rows =
    part === undefined
      ? await store.read(countsOfAllSql, [...parameters, version ?? null])
      : await store.read(countsOfPartSql, [...parameters, part.kind, part.part]);
  return rows.map(({ range, ratio, times }) => ({ range: Number(range), ratio: Number(ratio), times: Number(times) }));
}

/** The pod types and servers that have stored errors. */
export async function listErrorParts(
  store: Store,
  { targetModel, target, fromMs }: Pick<CountsRange, 'targetModel' | 'target' | 'fromMs'>,
): Promise<ErrorPart[]> {
  return await store.read(countedPartsSql, [targetModel, fromMs, target]);
}
