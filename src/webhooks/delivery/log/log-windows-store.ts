/**
 * Reads the log of a hook window by window, so that a search in millions of rows delays no other request. Few of its columns have an
 * index, so a search reads row after row. On SQLite reads run in the event loop, where the requests of all owners wait for them. So
 * in each turn of the event loop only one search of the process reads one window.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { idAtMs } from '../../../database/ids.ts';
import { type Store, statement } from '../../../database/store.ts';

export const WINDOW_ROWS = 2_000;

const rowBehindSql = statement<{ id: number }>(
  'delivery-log-row-behind',
  'SELECT id FROM deliveries WHERE hook_id = $1 AND id < $2 AND id >= $3 ORDER BY id DESC LIMIT 1 OFFSET $4',
);
const rowAheadSql = statement<{ id: number }>(
  'delivery-log-row-ahead',
  'SELECT id FROM deliveries WHERE hook_id = $1 AND id > $2 ORDER BY id LIMIT 1 OFFSET $3',
);

interface CreatedRow {
  readonly id: number;
  readonly created_at_ms: number;
}

const nextAndNewestSql = statement<CreatedRow>(
  'delivery-log-next-and-newest',
  `SELECT * FROM (SELECT id, created_at_ms FROM deliveries WHERE hook_id = $1 AND id >= $2 ORDER BY id LIMIT 1) AS next
   UNION ALL
   SELECT * FROM (SELECT id, created_at_ms FROM deliveries WHERE hook_id = $1 ORDER BY id DESC LIMIT 1) AS newest`,
);

/** Ids from `fromId` to below `beforeId`. */
export interface LogRange {
  readonly hookId: number;
  readonly fromId: number;
  readonly beforeId: number;
}

/** Times from `sinceMs` to below `untilMs`. */
export interface Period {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** A delivery is created within this time of its id. */
const TOLERANCE_MS = 60_000;

/** Deliveries that were created at that time or later have no smaller ids. */
export function firstIdSince(sinceMs: number): number {
  return Math.max(0, idAtMs(sinceMs - TOLERANCE_MS));
}

/**
 * The part of the range that can have deliveries of the period. Ids follow the time, but after the clock was set back they stay ahead of
 * it for a while. If the next delivery after the period shows that, or the newest one, the newer end of the range is not cut.
 */
export async function cutToPeriod(
  store: Store,
  { sinceMs, untilMs }: Period,
  { hookId, fromId, beforeId }: LogRange,
): Promise<LogRange> {
  const firstId = Math.min(beforeId, Math.max(fromId, firstIdSince(sinceMs)));
  const endId = idAtMs(untilMs + TOLERANCE_MS);
  if (endId >= beforeId) return { hookId, fromId: firstId, beforeId };
  const rows = await store.read(nextAndNewestSql, [hookId, endId]);
  const isAhead = rows.some((row) => row.created_at_ms < untilMs || isIdAhead(row));
  return { hookId, fromId: firstId, beforeId: isAhead ? beforeId : endId };
}

/** Whether the clock was ahead when the id was made, or not long before. */
function isIdAhead({ id, created_at_ms: createdAtMs }: CreatedRow): boolean {
  return id >= idAtMs(createdAtMs + TOLERANCE_MS);
}

/** The id of the row that is this many rows further back; undefined when the range has fewer. */
export async function findRowBehind(
  store: Store,
  { hookId, fromId, beforeId }: LogRange,
  rows: number,
): Promise<number | undefined> {
  const [row] = await store.read(rowBehindSql, [hookId, beforeId, fromId, rows]);
  return row?.id;
}

/** The range in windows, the newest first. */
export async function* listNewestFirst(store: Store, range: LogRange): AsyncGenerator<LogRange> {
  for (let { beforeId } = range; ; ) {
    await takeTurn();
    const start = await findRowBehind(store, { ...range, beforeId }, WINDOW_ROWS);
    yield { ...range, fromId: start ?? range.fromId, beforeId };
    if (start === undefined) return;
    beforeId = start;
  }
}

/** The log from an id on in windows, the oldest first. */
export async function* listOldestFirst(
  store: Store,
  { hookId, fromId: firstId }: Pick<LogRange, 'hookId' | 'fromId'>,
): AsyncGenerator<LogRange> {
  for (let fromId = firstId; ; ) {
    await takeTurn();
    const [row] = await store.read(rowAheadSql, [hookId, fromId - 1, WINDOW_ROWS]);
    yield { hookId, fromId, beforeId: row?.id ?? Number.MAX_SAFE_INTEGER };
    if (row === undefined) return;
    fromId = row.id;
  }
}

let lastTurn: Promise<void> = Promise.resolve();

/** Resolves in a turn of the event loop in which no other search reads. */
async function takeTurn(): Promise<void> {
  lastTurn = lastTurn.then(() => yieldToCalls());
  await lastTurn;
}
