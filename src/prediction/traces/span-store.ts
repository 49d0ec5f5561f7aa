/** Stores requests from spans until the load at their start is known. */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import type { BoundStatement, Store } from '../../database/store.ts';
import { statement } from '../../database/store.ts';
import { repeatBatches, type SweepPace } from '../../database/sweep.ts';
import type { LoggedRequest } from '../formats/request-log.ts';

export interface WaitingSpan extends LoggedRequest {
  /** `span:`, then the trace id and the span id. */
  readonly requestId: string;
  readonly targetModel: string;
}

interface SpanRow {
  readonly request_id: string;
  readonly target_model: string;
  readonly server: string;
  readonly start_ms: number;
  readonly first_token_ms: number;
  readonly end_ms: number;
  readonly input_tokens: number;
  readonly cached_tokens: number;
  readonly output_tokens: number;
}

const COLUMNS =
  'request_id, target_model, server, start_ms, first_token_ms, end_ms, input_tokens, cached_tokens, output_tokens';

// A collector that got no answer sends the same spans again.
const insertSpanSql = statement(
  'waiting-span-insert',
  `INSERT INTO waiting_spans (${COLUMNS}, is_learned) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0)
   ON CONFLICT (request_id) DO NOTHING`,
);
const dueSpansSql = statement<SpanRow>(
  'waiting-span-due',
  `SELECT ${COLUMNS} FROM waiting_spans WHERE is_learned = 0 AND start_ms <= $1 ORDER BY start_ms LIMIT $2`,
);
// Spans not learned yet started later or are due themselves. The last to end come first, as they are load for longest.
const spansUnderWaySql = statement<SpanRow>(
  'waiting-span-under-way',
  `SELECT ${COLUMNS} FROM waiting_spans WHERE is_learned = 1 AND end_ms >= $1 AND start_ms <= $2
   ORDER BY end_ms DESC LIMIT $3`,
);
const spansEndedSql = statement<SpanRow>(
  'waiting-span-ended',
  `SELECT ${COLUMNS} FROM waiting_spans WHERE is_learned = 1 AND end_ms >= $1 AND (end_ms, request_id) < ($2, $3)
   ORDER BY end_ms DESC, request_id DESC LIMIT $4`,
);
const markLearnedSql = statement(
  'waiting-span-learned',
  'UPDATE waiting_spans SET is_learned = 1 WHERE request_id = $1',
);
const IS_OVER = 'end_ms < $1 AND is_learned = 1';
const deleteOverSql = statement(
  'waiting-span-delete-over',
  `DELETE FROM waiting_spans WHERE ${IS_OVER}
     AND request_id IN (SELECT request_id FROM waiting_spans WHERE ${IS_OVER} ORDER BY end_ms LIMIT $2)
   RETURNING request_id`,
);
const countSpansSql = statement<{ count: number }>('waiting-span-count', 'SELECT COUNT(*) AS count FROM waiting_spans');

/** Stores spans in one transaction: once it resolves, all are durable; if it rejects, none is stored. */
export async function storeSpans(store: Store, spans: readonly WaitingSpan[]): Promise<void> {
  await store.writeAll(
    spans.map((span) => ({
      statement: insertSpanSql,
      parameters: [
        span.requestId,
        span.targetModel,
        span.server,
        span.startMs,
        span.firstTokenMs,
        span.endMs,
        Math.round(span.inputTokens),
        Math.round(span.cachedTokens),
        Math.round(span.outputTokens),
      ],
    })),
  );
}

/** Returns the requests to learn that started at `startedByMs` or before, the oldest first. */
export async function listDueSpans(store: Store, startedByMs: number, limit: number): Promise<WaitingSpan[]> {
  return (await store.read(dueSpansSql, [startedByMs, limit])).map(toSpan);
}

interface SpanRange {
  readonly fromMs: number;
  readonly toMs: number;
  readonly limit: number;
}

/** Returns the learned requests that were under way at some time from `fromMs` to `toMs`. */
export async function listSpansUnderWay(store: Store, { fromMs, toMs, limit }: SpanRange): Promise<WaitingSpan[]> {
  return (await store.read(spansUnderWaySql, [fromMs, toMs, limit])).map(toSpan);
}

const ROWS_OF_A_PAGE = 500;

/** Reads the learned requests that ended from `fromMs` on and before `toMs`, the last first, in pages, between which calls are answered. */
export async function* readEndedPages(
  store: Store,
  { fromMs, toMs }: Pick<SpanRange, 'fromMs' | 'toMs'>,
): AsyncGenerator<WaitingSpan[]> {
  let last = { endMs: toMs, requestId: '' };
  for (;;) {
    const rows = await store.read(spansEndedSql, [fromMs, last.endMs, last.requestId, ROWS_OF_A_PAGE]);
    const page = rows.map(toSpan);
    yield page;
    if (page.length < ROWS_OF_A_PAGE) return;
    // A read of SQLite ends in the event loop turn in which it begins.
    await yieldToCalls();
    last = page.at(-1)!;
  }
}

export async function markSpansLearned(store: Store, requestIds: readonly string[]): Promise<void> {
  await store.writeAll(requestIds.map((id): BoundStatement => ({ statement: markLearnedSql, parameters: [id] })));
}

/** Deletes in batches, because up to 200,000 may wait. */
export async function deleteSpansOver(store: Store, endedBeforeMs: number, pace: SweepPace): Promise<void> {
  await repeatBatches(pace, async (limit) => (await store.write(deleteOverSql, [endedBeforeMs, limit])).length);
}

export async function countWaitingSpans(store: Store): Promise<number> {
  const [row] = await store.read(countSpansSql, []);
  return row?.count ?? 0;
}

function toSpan(row: SpanRow): WaitingSpan {
  return {
    requestId: row.request_id,
    targetModel: row.target_model,
    run: '',
    server: row.server,
    serverIp: row.server,
    startMs: row.start_ms,
    firstTokenMs: row.first_token_ms,
    endMs: row.end_ms,
    inputTokens: row.input_tokens,
    cachedTokens: row.cached_tokens,
    outputTokens: row.output_tokens,
  };
}
