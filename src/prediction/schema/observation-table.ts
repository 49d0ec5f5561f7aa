/**
 * Collects observations as columns, for training and evaluation. The columns of metrics are those of a Predict call, so one
 * feature computation serves both. `listRows` gives the order of time.
 */
import { HISTORY_COLUMNS, METRIC_COLUMNS, MODEL_COLUMNS, type PredictColumns } from './columns.ts';
import type { Observation } from './observation.ts';

/** The numeric columns that features are computed from, of a call or of a table. */
export type MetricColumns = Pick<PredictColumns, 'count' | (typeof MODEL_COLUMNS)[number]>;

export interface ObservationTable extends MetricColumns {
  readonly podTypes: string[];
  readonly servers: string[];
  readonly models: string[];
  readonly runs: string[];
  /** Index into `podTypes`. */
  podType: Int32Array;
  /** Index into `servers`. */
  server: Int32Array;
  /** Index into `models`. */
  model: Int32Array;
  /** Index into `runs`. */
  run: Int32Array;
  /** The end of the request; NaN if not known. */
  endMs: Float64Array;
  /** NaN when the source has no times. */
  atMs: Float64Array;
  /** NaN when not observed. */
  ttftMs: Float64Array;
  /** NaN when not observed. */
  tpotMs: Float64Array;
  /** The length of the answer; NaN if not known. */
  outputTokens: Float64Array;
}

export type PredictionTarget = 'ttft' | 'tpot';
export const PREDICTION_TARGETS: readonly PredictionTarget[] = ['ttft', 'tpot'];

export function createObservationTable(capacity = 1024): ObservationTable {
  const table = { count: 0, podTypes: [], servers: [], models: [], runs: [] } as unknown as ObservationTable;
  for (const name of [...MODEL_COLUMNS, 'atMs', 'endMs', 'ttftMs', 'tpotMs', 'outputTokens'] as const)
    table[name] = new Float64Array(capacity);
  // Not 16 bits: files may name more than 65,536 of each.
  for (const name of ['podType', 'model', 'run', 'server'] as const) table[name] = new Int32Array(capacity);
  return table;
}

export function appendObservation(table: ObservationTable, row: Observation): void {
  if (table.count === table.atMs.length) grow(table, table.count * 2);
  const at = table.count++;
  for (const name of METRIC_COLUMNS) table[name][at] = row.input[name];
  for (const [i, name] of HISTORY_COLUMNS.entries()) table[name][at] = row.history?.[i] ?? Number.NaN;
  table.podType[at] = internName(table.podTypes, row.input.podType);
  table.server[at] = internName(table.servers, row.input.serverIp);
  table.model[at] = internName(table.models, row.targetModel);
  table.run[at] = internName(table.runs, row.run ?? '');
  table.atMs[at] = row.atMs ?? Number.NaN;
  table.endMs[at] = row.endMs ?? Number.NaN;
  table.ttftMs[at] = row.ttftMs ?? Number.NaN;
  table.tpotMs[at] = row.tpotMs ?? Number.NaN;
  table.outputTokens[at] = row.outputTokens ?? Number.NaN;
}

/** Returns a table of these rows, in this order. It shares the names, so indexes keep their meaning. */
export function selectRows(table: ObservationTable, rows: ArrayLike<number>): ObservationTable {
  const selected = createObservationTable(Math.max(1, rows.length));
  for (const name of ['podTypes', 'servers', 'models', 'runs'] as const)
    for (const known of table[name]) selected[name].push(known);
  for (const name of ALL_COLUMNS) {
    const from = table[name];
    const to = selected[name];
    for (let i = 0; i < rows.length; i++) to[i] = from[rows[i]!]!;
  }
  selected.count = rows.length;
  return selected;
}

/** Lists the rows in the order of time; in their present order unless all have a time. */
export function listRows(table: ObservationTable): number[] {
  const rows = Array.from({ length: table.count }, (_, i) => i);
  return hasTimes(table) ? rows.sort((a, b) => table.atMs[a]! - table.atMs[b]! || a - b) : rows;
}

export function hasTimes(table: ObservationTable): boolean {
  return !table.atMs.subarray(0, table.count).some(Number.isNaN);
}

/** Returns the indexes of the rows that observed this target, in order. */
export function rowsWith(table: ObservationTable, target: PredictionTarget): Int32Array {
  const observed = observedTimes(table, target);
  const rows: number[] = [];
  for (let i = 0; i < table.count; i++) if (observed[i]! > 0) rows.push(i);
  return Int32Array.from(rows);
}

export function observedTimes(table: ObservationTable, target: PredictionTarget): Float64Array {
  return target === 'ttft' ? table.ttftMs : table.tpotMs;
}

/** Counts the rows that are equal to an earlier one, including their times. */
export function countCopies(table: ObservationTable): number {
  const seen = new Set<string>();
  const columns = [...METRIC_COLUMNS, 'atMs', 'ttftMs', 'tpotMs', 'podType', 'model', 'server', 'run'] as const;
  for (let row = 0; row < table.count; row++) seen.add(columns.map((name) => table[name][row]).join());
  return table.count - seen.size;
}

/** The index of each name, by the array of names of a table. */
const INDEX_OF = new WeakMap<string[], Map<string, number>>();

function internName(names: string[], name: string): number {
  let index = INDEX_OF.get(names);
  if (index === undefined) {
    index = new Map(names.map((known, at) => [known, at]));
    INDEX_OF.set(names, index);
  }
  const known = index.get(name);
  if (known !== undefined) return known;
  index.set(name, names.length);
  names.push(name);
  return names.length - 1;
}

const ALL_COLUMNS = [
  ...MODEL_COLUMNS,
  'atMs',
  'endMs',
  'ttftMs',
  'tpotMs',
  'outputTokens',
  'podType',
  'model',
  'server',
  'run',
] as const;

function grow(table: ObservationTable, capacity: number): void {
  for (const name of ALL_COLUMNS) {
    const old = table[name];
    const grown = new (old.constructor as new (length: number) => typeof old)(capacity);
    grown.set(old as never);
    table[name] = grown as never;
  }
}
