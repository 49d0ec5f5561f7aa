/** Reads rows into a table of observations, and counts refused rows and ignored fields. */
import { FIRST_EPOCH_MS } from '../schema/milliseconds.ts';
import type { Observation } from '../schema/observation.ts';
import {
  appendObservation,
  createObservationTable,
  listRows,
  type ObservationTable,
  selectRows,
} from '../schema/observation-table.ts';
import { KNOWN_FIELDS } from './field-names.ts';
import { describePlace, type Format, isTableFormat, readObservations } from './read-observations.ts';
import { REQUEST_FIELDS } from './request-log.ts';

/** One reason for which rows were refused: how many, and the position of the first. */
export interface Refusals {
  readonly reason: string;
  readonly rows: number;
  readonly firstAt: string;
}

/** A field that is not used, and how many rows have it. */
export interface IgnoredField {
  readonly name: string;
  readonly rows: number;
}

export interface ReadTable {
  readonly table: ObservationTable;
  readonly ignoredFields: readonly IgnoredField[];
  /** The fields that are used where a row has them. */
  readonly knownFields: readonly string[];
  /** Most frequent first. */
  readonly refusals: readonly Refusals[];
}

export interface ReadTableOptions {
  readonly format: Format | undefined;
  readonly targetModel: string;
  readonly kvCapacityTokens?: number | undefined;
  readonly server?: string | undefined;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly name?: string | undefined;
  readonly maxRows?: number | undefined;
  /** Returns why a row is refused; undefined accepts it. */
  readonly check?: (observation: Observation) => string | undefined;
  readonly onProgress?: (rows: number) => void;
}

/** Reads every file, one after the other, into one table in the order of time. */
export async function readTable(paths: readonly string[], options: ReadTableOptions): Promise<ReadTable> {
  const table = createObservationTable();
  const refused = createRefusalCounter();
  const ignored = createFieldCounter();
  for (const path of paths)
    for await (const row of readObservations(path, { ...options, onIgnoredField: ignored.count })) {
      const refusal = 'refusal' in row ? row.refusal : options.check?.(row.observation);
      if (refusal === undefined && 'observation' in row) appendObservation(table, row.observation);
      else refused.count(refusal ?? '', describePlace(path, row));
      if (row.line % 10_000 === 0) options.onProgress?.(table.count);
    }
  const knownFields = isTableFormat(options.format) ? KNOWN_FIELDS : REQUEST_FIELDS;
  return { table: orderByTime(table), ignoredFields: ignored.list(), knownFields, refusals: refused.list() };
}

/** Returns the rows in the order of time; unchanged if some have no time of day, such as runs with clocks of their own. */
function orderByTime(table: ObservationTable): ObservationTable {
  if (!table.atMs.subarray(0, table.count).every((atMs) => atMs >= FIRST_EPOCH_MS)) return table;
  const rows = listRows(table);
  return rows.every((row, i) => row === i) ? table : selectRows(table, rows);
}

export interface RefusalCounter {
  readonly count: (reason: string, at: string) => void;
  /** Returns the most frequent reasons, with the rest summed up as the last one. */
  readonly list: () => Refusals[];
}

export interface FieldCounter {
  readonly count: (name: string) => void;
  /** Returns the most frequent fields, with the rest summed up as the last one. */
  readonly list: () => IgnoredField[];
}

/** A limit, because each row of a file can have its own reason, and its own unknown field. */
const MAX_LISTED = 100;
/** Beyond this many, further reasons or fields are counted together: a stream may bring new ones for days. */
const MAX_COUNTED = 10_000;
/** Reasons and fields are cut to this length, because they contain text of the file. */
const MAX_CHARACTERS = 300;

export function createRefusalCounter(): RefusalCounter {
  const byReason = new Map<string, Refusals>();
  const rest = 'other reasons';
  return {
    count(text, at) {
      const reason = chooseKey(byReason, text, rest);
      const known = byReason.get(reason);
      byReason.set(reason, { reason, rows: (known?.rows ?? 0) + 1, firstAt: known?.firstAt ?? at });
    },
    list() {
      const [listed, others] = splitMostFrequent([...byReason.values()], ({ reason }) => reason === rest);
      return others.length === 0 ? listed : [...listed, { ...others[0]!, reason: rest, rows: sumRows(others) }];
    },
  };
}

export function createFieldCounter(): FieldCounter {
  const byName = new Map<string, IgnoredField>();
  const rest = 'other fields';
  return {
    count(text) {
      const name = chooseKey(byName, text, rest);
      byName.set(name, { name, rows: (byName.get(name)?.rows ?? 0) + 1 });
    },
    list() {
      const [listed, others] = splitMostFrequent([...byName.values()], ({ name }) => name === rest);
      return others.length === 0 ? listed : [...listed, { name: rest, rows: sumRows(others) }];
    },
  };
}

function chooseKey(known: ReadonlyMap<string, unknown>, text: string, rest: string): string {
  const key = text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
  return known.has(key) || known.size < MAX_COUNTED ? key : rest;
}

/** Splits off the most frequent, sorted; the others keep their order. */
function splitMostFrequent<T extends { readonly rows: number }>(
  all: readonly T[],
  isRest: (one: T) => boolean,
): readonly [listed: T[], others: T[]] {
  const sorted = all.filter((one) => !isRest(one)).sort((a, b) => b.rows - a.rows);
  const listed = sorted.slice(0, MAX_LISTED);
  const isListed = new Set(listed);
  return [listed, all.filter((one) => !isListed.has(one))];
}

function sumRows(counted: readonly { readonly rows: number }[]): number {
  return counted.reduce((sum, { rows }) => sum + rows, 0);
}
