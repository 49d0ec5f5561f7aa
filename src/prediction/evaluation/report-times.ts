/** Decides when a simulated service receives a report: at once, late, in batches or incompletely. */
import { replayHistory } from '../history/replay-history.ts';
import { HISTORY_COLUMNS } from '../schema/columns.ts';
import { type ObservationTable, type PredictionTarget, selectRows } from '../schema/observation-table.ts';

export interface Reporting {
  /** The delay of each report. */
  readonly delayMs: number;
  /** The interval at which reports are sent together; 0 sends each alone. */
  readonly batchMs: number;
  /** This share of the requests is never reported. */
  readonly lostShare: number;
}

export const PROMPT_REPORTING: Reporting = { delayMs: 0, batchMs: 0, lostShare: 0 };

/** Returns when a target of a row becomes known; infinity if never, and -Infinity if the source has no times. */
export type KnownAt = (row: number, target: PredictionTarget) => number;

/** The assumed length of an answer, in tokens, if neither its end nor its length is known. */
const TYPICAL_TOKENS = 200;

export function createKnownAt(table: ObservationTable, reporting: Reporting = PROMPT_REPORTING): KnownAt {
  return (row, target) => {
    const atMs = table.atMs[row]!;
    if (isLost(row, reporting)) return Number.POSITIVE_INFINITY;
    return Number.isNaN(atMs) ? Number.NEGATIVE_INFINITY : reportAt(happenedAt(table, row, target), reporting);
  };
}

function happenedAt(table: ObservationTable, row: number, target: PredictionTarget): number {
  const atMs = table.atMs[row]!;
  const firstTokenMs = Number.isNaN(table.ttftMs[row]!) ? atMs : atMs + table.ttftMs[row]!;
  if (target === 'ttft') return firstTokenMs;
  const endMs = table.endMs[row]!;
  if (!Number.isNaN(endMs)) return endMs;
  return firstTokenMs + table.tpotMs[row]! * (table.outputTokens[row] || TYPICAL_TOKENS);
}

function reportAt(eventMs: number, { delayMs, batchMs }: Reporting): number {
  const sentMs = batchMs > 0 ? Math.ceil(eventMs / batchMs) * batchMs : eventMs;
  return sentMs + delayMs;
}

const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

function isLost(row: number, { lostShare }: Reporting): boolean {
  return (row * GOLDEN_RATIO) % 1 < lostShare;
}

/** Returns the rows with the history of their servers as known from such reports; unchanged if the table has no history. */
export function retellHistory(table: ObservationTable, reporting: Reporting): ObservationTable {
  const rows = Array.from({ length: table.count }, (_, row) => row);
  const hasHistory = rows.some((row) => table.sinceDispatchMs[row]! >= 0);
  if (!hasHistory) return table;
  const retold = selectRows(table, rows);
  const requests = rows.map((row) => ({
    server: String(table.server[row]),
    atMs: table.atMs[row]!,
    firstTokenMs: table.atMs[row]! + table.ttftMs[row]!,
    tokens: table.inputTokenLength[row]! * Math.max(0, 1 - table.prefixCacheScore[row]!),
  }));
  const histories = replayHistory(requests, (eventMs, row) =>
    isLost(row, reporting) ? Number.POSITIVE_INFINITY : reportAt(eventMs, reporting),
  );
  for (const row of rows) for (const [h, name] of HISTORY_COLUMNS.entries()) retold[name][row] = histories[row]![h]!;
  return retold;
}
