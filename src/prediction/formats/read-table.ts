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

/** Why rows were refused: how many for each reason, and where the first of them stands. */
export interface Refusals {
  readonly reason: string;
  readonly rows: number;
  readonly firstAt: string;
}

/** A field that nothing is made of, and in how many rows it stands. */
export interface IgnoredField {
  readonly name: string;
  readonly rows: number;
}

export interface ReadTable {
  readonly table: ObservationTable;
  readonly ignoredFields: readonly IgnoredField[];
  /** The fields that something would have been made of. */
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
  const byReason = new Map<string, Refusals>();
  const ignored = new Map<string, number>();
  const onIgnoredField = (name: string) => void ignored.set(name, (ignored.get(name) ?? 0) + 1);
  for (const path of paths)
    for await (const row of readObservations(path, { ...options, onIgnoredField })) {
      const refusal = 'refusal' in row ? row.refusal : options.check?.(row.observation);
      if (refusal === undefined && 'observation' in row) appendObservation(table, row.observation);
      else countRefusal(byReason, refusal ?? '', describePlace(path, row));
      if (row.line % 10_000 === 0) options.onProgress?.(table.count);
    }
  const ignoredFields = Array.from(ignored, ([name, rows]) => ({ name, rows }));
  const knownFields = isTableFormat(options.format) ? KNOWN_FIELDS : REQUEST_FIELDS;
  const refusals = [...byReason.values()].sort((a, b) => b.rows - a.rows);
  return { table: orderByTime(table), ignoredFields, knownFields, refusals };
}

/** The same rows in the order of time; as they stand when some have no time of day, as runs with clocks of their own. */
function orderByTime(table: ObservationTable): ObservationTable {
  if (!table.atMs.subarray(0, table.count).every((atMs) => atMs >= FIRST_EPOCH_MS)) return table;
  const rows = listRows(table);
  return rows.every((row, i) => row === i) ? table : selectRows(table, rows);
}

/** Counts a row that is refused for this reason. */
export function countRefusal(byReason: Map<string, Refusals>, reason: string, at: string): void {
  const known = byReason.get(reason);
  byReason.set(reason, { reason, rows: (known?.rows ?? 0) + 1, firstAt: known?.firstAt ?? at });
}
