/**
 * Stores the log of what processes have learned, in the order of its commits. A writer holds the row of the clock until its
 * commit, so that no row becomes visible after a later one.
 */
import { type BoundStatement, type SqlValue, type Store, statement } from '../../database/store.ts';
import { SWEEP_BATCH } from '../../database/sweep.ts';

// Not advanced for a row that was committed before its answer was lost: a number without a row would look like a deleted row.
const advanceClockSql = statement(
  'shared-clock-advance',
  `UPDATE shared_clock SET sequence = sequence + 1
   WHERE NOT EXISTS (SELECT 1 FROM shared_log WHERE process = $1 AND number = $2)`,
);
// A row that was committed before stays as it is.
const appendRowSql = statement(
  'shared-log-append',
  `INSERT INTO shared_log (sequence, process, number, written_at_ms, content)
   SELECT sequence, $1, $2, $3, $4 FROM shared_clock WHERE TRUE
   ON CONFLICT (process, number) DO NOTHING`,
);
const listRowsSql = statement<LogRow>(
  'shared-log-list',
  `SELECT sequence, process, content, (SELECT MIN(sequence) FROM shared_log) AS first
   FROM shared_log WHERE sequence > $1 ORDER BY sequence LIMIT 32`,
);
const readEndsSql = statement<LogEnds>(
  'shared-log-ends',
  `SELECT sequence AS last, COALESCE((SELECT MIN(sequence) FROM shared_log), sequence + 1) AS first FROM shared_clock`,
);
const deleteRowsSql = statement(
  'shared-log-delete',
  `DELETE FROM shared_log WHERE sequence IN
     (SELECT sequence FROM shared_log WHERE sequence <= $1 AND written_at_ms < $2 ORDER BY sequence LIMIT $3)`,
);

export interface LogRow {
  readonly sequence: number;
  readonly process: string;
  readonly content: Uint8Array;
  /** The oldest row that was kept when this one was read. */
  readonly first: number;
}

/** The oldest row that is kept, and the newest row that was ever written. */
export interface LogEnds {
  readonly first: number;
  readonly last: number;
}

export interface NewRow {
  readonly process: string;
  /** The number of the row in its process: the same row is never appended twice. */
  readonly number: number;
  readonly nowMs: number;
  readonly content: Uint8Array;
}

export async function appendToLog(store: Store, { process, number, nowMs, content }: NewRow): Promise<void> {
  const parameters: SqlValue[] = [process, number, nowMs, content];
  const statements: BoundStatement[] = [
    { statement: advanceClockSql, parameters: [process, number] },
    { statement: appendRowSql, parameters },
  ];
  // One trip: a process that stops between two trips would keep the row of the clock locked, and no other process could append.
  // One turn: a retry waits for its first transaction, which the server may still run, before it looks for the row.
  await store.writeAll(statements, { inOneTrip: true, turn: 'shared log' });
}

/** Lists the next rows after this one, at most 32. */
export async function listLogRows(store: Store, after: number): Promise<LogRow[]> {
  return await store.read(listRowsSql, [after]);
}

export async function readLogEnds(store: Store): Promise<LogEnds> {
  const [ends] = await store.read(readEndsSql);
  return ends ?? { first: 1, last: 0 };
}

/**
 * Deletes one batch of the oldest rows, up to `upTo`, that were written before `beforeMs`. A process writes far fewer between two
 * calls.
 */
export async function deleteLogRows(store: Store, upTo: number, beforeMs: number): Promise<void> {
  await store.write(deleteRowsSql, [upTo, beforeMs, SWEEP_BATCH]);
}
