/**
 * Stores training rows as samples, and decides whether their times are TTFT or end-to-end.
 *
 * llm-d's interface calls two different times "actual_ttft_ms": the time to the first token, and, from a client that does not
 * stream, the end-to-end time. A row does not show which it is, but only a client that streams sends TPOT rows. So a row without
 * TPOT is held until a TPOT row follows: then it is a time to the first token. If none follows many rows for a while, they are
 * end-to-end times, and belong to a separate target model.
 */

import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { idAtMs } from '../../database/ids.ts';
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  type Store,
  statement,
  type Transaction,
} from '../../database/store.ts';
import { bindRowsExactly, multiRowInsert } from '../../database/value-rows.ts';
import { insertSampleStatements, type Sample } from '../observations/sample-store.ts';
import { METRIC_COLUMNS } from '../schema/columns.ts';
import { MAX_MODEL_NAME_BYTES } from '../schema/model-name.ts';
import { findMistake } from '../schema/observation.ts';
import { ROWS_A_TURN } from './read-rows.ts';

/** The topic by which processes learn that the times of a model now measure something else. */
export const MEASURES_TOPIC = 'llm-d-measures';

/** If none of this many rows, over this time, has a TPOT, their times are end-to-end: some streamed requests would have one. */
const MIN_HELD_ROWS = 200;
const HELD_MS = 30_000;
/** At most this many rows are held, however fast they come. */
const MAX_HELD_ROWS = 5000;

export type Measures = 'unknown' | 'first-token' | 'end-to-end';

/** Returns the name of the target model for the end-to-end times of another one. */
export function nameEndToEnd(targetModel: string): string {
  return `${targetModel}${END_TO_END}`;
}

export function isEndToEnd(targetModel: string): boolean {
  return targetModel.endsWith(END_TO_END);
}

const END_TO_END = '/end-to-end';

/** The longest name of a target model here, which leaves room for the suffix of end-to-end times. */
export const MAX_NAME_BYTES = MAX_MODEL_NAME_BYTES - END_TO_END.length;

// Locks the row of the model, so that all processes together take the batches of one model one after the other.
const lockModelSql = statement<{ measures: Measures; held_rows: number }>(
  'llm-d-model-lock',
  `INSERT INTO llm_d_models (target_model, measures, held_rows, updated_at_ms) VALUES ($1, 'unknown', 0, $2)
   ON CONFLICT (target_model) DO UPDATE SET updated_at_ms = excluded.updated_at_ms
   RETURNING measures, held_rows`,
);
const updateModelSql = statement(
  'llm-d-model-update',
  'UPDATE llm_d_models SET measures = $2, held_rows = $3 WHERE target_model = $1',
);
const holdRowsSql = multiRowInsert('llm-d-hold-rows', 'llm_d_held_rows', {
  id: 'int',
  target_model: 'text',
  observation: 'text',
});
const firstHeldSql = statement<{ id: number | null }>(
  'llm-d-first-held-row',
  'SELECT MIN(id) AS id FROM llm_d_held_rows WHERE target_model = $1',
);
const releaseRowsSql = statement<{ id: number; observation: string }>(
  'llm-d-release-rows',
  'DELETE FROM llm_d_held_rows WHERE target_model = $1 RETURNING id, observation',
);
const endToEndModelsSql = statement<{ target_model: string }>(
  'llm-d-end-to-end-models',
  `SELECT target_model FROM llm_d_models WHERE measures = 'end-to-end' ORDER BY updated_at_ms DESC LIMIT $1`,
);

/** What the transaction needs to know about the rows of a batch. */
export interface BatchTimes {
  readonly rows: number;
  /** True if a row has a TPOT. */
  readonly hasTpot: boolean;
}

export interface TrainingBatch extends BatchTimes {
  readonly targetModel: string;
  /**
   * The samples as JSON, in groups. Passing 10,000 objects to the writer thread at once would delay all calls by tens of
   * milliseconds, and so would building all their statements for PostgreSQL.
   */
  readonly groups: readonly string[];
  readonly nowMs: number;
  /** Held rows with smaller ids have waited for `HELD_MS` or longer. */
  readonly oldId: number;
  /** Notifies other processes that the times of the model measure something else. */
  readonly markChanged: BoundStatement;
}

export interface TakenBatch {
  /** The samples that can be learned from now, including held rows of earlier batches. */
  readonly samples: readonly Sample[];
  readonly measures: Measures;
}

interface StoredBatch {
  /** True if the rows of the batch are held. */
  readonly isHeld: boolean;
  /** Held rows of earlier batches. The rows of this batch are not returned, because its caller has them. */
  readonly released: readonly Sample[];
  readonly measures: Measures;
}

export const takeBatchProcedure: Procedure<TrainingBatch, StoredBatch> = conditionalProcedure(
  import.meta.url,
  'takeBatchProcedure',
  async (tx, { targetModel, groups, rows: rowCount, hasTpot, nowMs, oldId, markChanged }) => {
    const [model] = await tx.run(lockModelSql, [targetModel, nowMs]);
    const [first] = model!.held_rows === 0 ? [] : await tx.run(firstHeldSql, [targetModel]);
    const hasWaited = typeof first?.id === 'number' && first.id < oldId;
    const known = { measures: model!.measures, heldRows: model!.held_rows, hasWaited };
    const next = decideMeasures(known, { rows: rowCount, hasTpot });
    const isHeld = next.measures === 'held';
    const rows = isHeld || known.heldRows === 0 ? [] : await tx.run(releaseRowsSql, [targetModel]);
    const released = rows.map(toSample).filter(isUsable).sort(byId);
    const toStatements = (samples: readonly Sample[]) =>
      next.measures === 'held'
        ? bindRowsExactly(holdRowsSql, samples.map(toHeldRow))
        : insertSampleStatements(listTaken(samples, next.measures, targetModel));
    await runGroups(tx, listGroups(released, groups), toStatements);
    const statements: BoundStatement[] = [];
    const measures = next.measures === 'held' ? known.measures : next.measures;
    if (measures !== known.measures) statements.push(markChanged);
    if (measures !== known.measures || next.heldRows !== known.heldRows)
      statements.push({ statement: updateModelSql, parameters: [targetModel, measures, next.heldRows] });
    await tx.runAll(statements);
    return { isHeld, released, measures };
  },
);

/** Builds the statements of each group only when those of the previous group have run. */
async function runGroups(
  tx: Transaction,
  groups: Iterable<readonly Sample[]>,
  toStatements: (samples: readonly Sample[]) => readonly BoundStatement[],
): Promise<void> {
  for (const group of groups)
    for (const { statement, parameters } of toStatements(group)) await tx.run(statement, parameters);
}

function* listGroups(released: readonly Sample[], groups: readonly string[]): Iterable<readonly Sample[]> {
  for (let start = 0; start < released.length; start += ROWS_A_TURN) yield released.slice(start, start + ROWS_A_TURN);
  for (const group of groups) yield JSON.parse(group) as readonly Sample[];
}

function listTaken(samples: readonly Sample[], measures: Measures, targetModel: string): readonly Sample[] {
  return measures === 'end-to-end' ? samples.map((sample) => toEndToEnd(sample, targetModel)) : samples;
}

interface KnownMeasures {
  readonly measures: Measures;
  readonly heldRows: number;
  /** True if the first of them has been held for `HELD_MS` or longer. */
  readonly hasWaited: boolean;
}

/** Decides what the times of this batch and of the held rows before it measure, or that they are held. */
export function decideMeasures(
  { measures, heldRows, hasWaited }: KnownMeasures,
  { rows, hasTpot }: BatchTimes,
): { readonly measures: Exclude<Measures, 'unknown'> | 'held'; readonly heldRows: number } {
  if (hasTpot) return { measures: 'first-token', heldRows: 0 };
  const waiting = heldRows + rows;
  const isMany = waiting >= MAX_HELD_ROWS || (hasWaited && waiting >= MIN_HELD_ROWS);
  if (measures === 'end-to-end' || isMany) return { measures: 'end-to-end', heldRows: 0 };
  return { measures: 'held', heldRows: waiting };
}

function toEndToEnd({ id, observation }: Sample, targetModel: string): Sample {
  return { id, observation: { ...observation, targetModel: nameEndToEnd(targetModel) } };
}

/** JSON has no undefined, so an absent time stays absent. */
function toHeldRow({ id, observation }: Sample) {
  return { id, target_model: observation.targetModel, observation: JSON.stringify(observation) };
}

function toSample({ id, observation }: { readonly id: number; readonly observation: string }): Sample {
  return { id, observation: JSON.parse(observation) as Sample['observation'] };
}

/** Drops rows that an earlier release stored and this one refuses, in which JSON turned an infinite number into null. */
function isUsable({ observation }: Sample): boolean {
  return (
    METRIC_COLUMNS.every((name) => Number.isFinite(observation.input[name])) && findMistake(observation) === undefined
  );
}

function byId(left: Sample, right: Sample): number {
  return left.id - right.id;
}

/** Stores times that the name of the target model declares to be end-to-end. */
export async function addSamples(store: Store, samples: readonly Sample[]): Promise<void> {
  await store.call(addSamplesProcedure, { groups: await encodeGroups(samples) });
}

export const addSamplesProcedure: Procedure<Pick<TrainingBatch, 'groups'>, void> = conditionalProcedure(
  import.meta.url,
  'addSamplesProcedure',
  (tx, { groups }) => runGroups(tx, listGroups([], groups), insertSampleStatements),
);

export interface NewSamples {
  readonly targetModel: string;
  readonly samples: readonly Sample[];
  readonly nowMs: number;
}

export async function takeBatch(store: Store, { targetModel, samples, nowMs }: NewSamples): Promise<TakenBatch> {
  const stored = await store.call(takeBatchProcedure, {
    ...readTimes(samples),
    targetModel,
    groups: await encodeGroups(samples),
    nowMs,
    oldId: idAtMs(nowMs - HELD_MS),
    markChanged: store.markChanged(MEASURES_TOPIC, nowMs),
  });
  const { isHeld, released, measures } = stored;
  return { measures, samples: isHeld ? [] : listTaken([...released, ...samples], measures, targetModel) };
}

export function readTimes(samples: readonly Sample[]): BatchTimes {
  return { rows: samples.length, hasTpot: samples.some(({ observation }) => observation.tpotMs !== undefined) };
}

/** JSON has no undefined, so an absent time stays absent. Other calls are answered between two groups. */
async function encodeGroups(samples: readonly Sample[]): Promise<string[]> {
  const groups: string[] = [];
  for (let start = 0; start < samples.length; start += ROWS_A_TURN) {
    if (start > 0) await yieldToCalls();
    groups.push(JSON.stringify(samples.slice(start, start + ROWS_A_TURN)));
  }
  return groups;
}

/** Lists target models whose clients do not stream, the most recently reported first. */
export async function listEndToEndModels(store: Store, limit: number): Promise<string[]> {
  const rows = await store.read(endToEndModelsSql, [limit]);
  return rows.map((row) => row.target_model);
}
