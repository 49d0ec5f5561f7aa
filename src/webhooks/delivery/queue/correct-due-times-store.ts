/**
 * Corrects due times that were written while the clock of a process was ahead. Otherwise deliveries would wait until the correct clock
 * reaches those times. Reads and writes bounded pages.
 */

import { idAtMs } from '../../../database/ids.ts';
import { MAX_CLOCK_SKEW_MS } from '../../../database/leases.ts';
import { type Statement, type Store, statement } from '../../../database/store.ts';
import { bindRows, multiRowStatement } from '../../../database/value-rows.ts';
import { LONGEST_PAUSE_MS } from '../schedule/breaker.ts';
import { longestRetryMs, MAX_ATTEMPTS } from '../schedule/retry-policy.ts';
import { isNeitherHeldNorCanceled, isStillPending, NEVER_MS } from './delivery-store.ts';

const PAGE = 500;
/** The reservation of a delivery for a manual attempt ends within this time. */
const LONGEST_RESERVED_MS = 60_000;
const LONGEST_WAIT_MS = Math.max(...Array.from({ length: MAX_ATTEMPTS }, (_, attempts) => longestRetryMs(attempts)));

/** 0: first attempts; 1: retries. */
export type Lane = 0 | 1;

/** The corrected due time of a delivery whose due time is later than its schedule allows; undefined if it is not. */
export function correctDueMs({ attempts, dueAtMs, nowMs }: { attempts: number; dueAtMs: number; nowMs: number }) {
  const longestMs = attempts === 0 ? LONGEST_RESERVED_MS : longestRetryMs(attempts);
  if (dueAtMs <= nowMs + longestMs + MAX_CLOCK_SKEW_MS) return undefined;
  return attempts === 0 ? nowMs : nowMs + longestMs;
}

const newestIdSql: Statement<{ id: number | null }> = statement(
  'delivery-newest-id',
  'SELECT MAX(delivery_id) AS id FROM delivery_contents',
);

/** Whether the newest delivery was created in the future: then the clock is behind, or another clock was ahead. */
export async function hasLaterDelivery(store: Store, nowMs: number): Promise<boolean> {
  const [newest] = await store.read(newestIdSql);
  return (newest?.id ?? 0) > idAtMs(nowMs + MAX_CLOCK_SKEW_MS);
}

interface HookQueueRow {
  readonly hook_id: number;
}

interface OpenHookQueueRow extends HookQueueRow {
  readonly latest_due_ms: number | null;
}

// Returns the latest due time of each hook queue, so that only hook queues with a late one are read.
const openHookQueuesSql: Statement<OpenHookQueueRow> = statement(
  'endpoints-open',
  `SELECT hook_id, (SELECT d.due_at_ms FROM deliveries d WHERE d.state = 'pending' AND d.hook_id = endpoint_queue.hook_id
     AND d.lane = $2 ORDER BY d.due_at_ms DESC, d.id DESC LIMIT 1) AS latest_due_ms
   FROM endpoint_queue WHERE hook_id > $1 AND ${isNeitherHeldNorCanceled} ORDER BY hook_id LIMIT ${PAGE}`,
);

interface LateRow {
  readonly id: number;
  readonly due_at_ms: number;
  readonly attempts: number;
}

// Reads one range of the index of waiting deliveries.
const lateDeliveriesSql: Statement<LateRow> = statement(
  'deliveries-late',
  `SELECT id, due_at_ms, attempts - schedule_from AS attempts FROM deliveries
   WHERE state = 'pending' AND hook_id = $1 AND lane = $2 AND (due_at_ms, id) > ($3, $4)
   ORDER BY due_at_ms, id LIMIT ${PAGE}`,
);

// The due time fences results of attempts under way, so a row is corrected only if it still has the due time that was read.
const correctDeliveriesSql = multiRowStatement(
  'deliveries-correct-due',
  { hookId: 'int', id: 'int', foundDueAtMs: 'int', dueAtMs: 'int' },
  ({ values, v }) =>
    `UPDATE deliveries SET due_at_ms = ${v.dueAtMs} FROM ${values}
     WHERE deliveries.hook_id = ${v.hookId} AND deliveries.id = ${v.id} AND deliveries.due_at_ms = ${v.foundDueAtMs}
       AND ${isStillPending('deliveries')}`,
);

const wakeSleepingSql: Statement = statement(
  'endpoint-wake-sleeping',
  `UPDATE endpoint_queue SET next_at_ms = $2, version = version + 1
   WHERE hook_id = $1 AND parked = 0 AND next_at_ms > $2 AND ${isNeitherHeldNorCanceled}`,
);

export interface DueTimeCorrection {
  readonly lane: Lane;
  readonly nowMs: number;
  /** Retries whose schedule allows a longer wait than this are not corrected. */
  readonly longestMs: number;
}

/** Corrects the deliveries of all hook queues that are not held; returns how many. */
export async function correctDeliveryTimes(store: Store, correction: DueTimeCorrection): Promise<number> {
  const { lane, nowMs } = correction;
  let count = 0;
  for (let afterId = 0; ; ) {
    const hookQueues = await store.read(openHookQueuesSql, [afterId, lane]);
    for (const { hook_id, latest_due_ms } of hookQueues)
      if (isLate(latest_due_ms, nowMs)) count += await correctOfHook(store, hook_id, correction);
    if (hookQueues.length < PAGE) return count;
    afterId = hookQueues.at(-1)!.hook_id;
  }
}

/** Whether the time is further ahead than the clock of another process can be now. */
function isLate(dueAtMs: number | null, nowMs: number): boolean {
  return dueAtMs !== null && dueAtMs > nowMs + MAX_CLOCK_SKEW_MS;
}

async function correctOfHook(
  store: Store,
  hookId: number,
  { lane, nowMs, longestMs }: DueTimeCorrection,
): Promise<number> {
  let count = 0;
  for (let after = [nowMs + MAX_CLOCK_SKEW_MS, 0]; ; ) {
    const rows = await store.read(lateDeliveriesSql, [hookId, lane, ...after]);
    const corrections = rows.flatMap(({ id, due_at_ms: foundDueAtMs, attempts }) => {
      const dueAtMs =
        longestRetryMs(attempts) > longestMs ? undefined : correctDueMs({ attempts, dueAtMs: foundDueAtMs, nowMs });
      return dueAtMs === undefined ? [] : [{ hookId, id, foundDueAtMs, dueAtMs }];
    });
    if (corrections.length > 0)
      await store.writeAll([
        ...bindRows(correctDeliveriesSql, corrections),
        { statement: wakeSleepingSql, parameters: [hookId, nowMs] },
      ]);
    count += corrections.length;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return count;
    after = [last.due_at_ms, last.id];
  }
}

// Reads few rows of one range of the index, unless a clock was ahead.
const lateHookQueuesSql: Statement<HookQueueRow> = statement(
  'endpoints-late',
  `SELECT hook_id FROM endpoint_queue
   WHERE next_at_ms > $1 AND next_at_ms < ${NEVER_MS} AND (parked = 1 OR next_at_ms > $2) AND ${isNeitherHeldNorCanceled}
   ORDER BY hook_id LIMIT ${PAGE}`,
);

const wakeLateSql: Statement = statement(
  'endpoint-wake-late',
  `UPDATE endpoint_queue SET next_at_ms = $2, version = version + 1 WHERE hook_id = $1 AND next_at_ms > $2 AND ${isNeitherHeldNorCanceled}`,
);

/** Ends pauses and sleeps that are longer than the longest possible ones; returns how many. */
export async function correctHookQueueTimes(store: Store, nowMs: number): Promise<number> {
  const latest = [LONGEST_PAUSE_MS, LONGEST_WAIT_MS].map((longestMs) => nowMs + longestMs + MAX_CLOCK_SKEW_MS);
  for (let count = 0; ; ) {
    const rows = await store.read(lateHookQueuesSql, latest);
    // Row by row in ascending order, as every other transaction locks them.
    for (const { hook_id } of rows) await store.write(wakeLateSql, [hook_id, nowMs]);
    count += rows.length;
    if (rows.length < PAGE) return count;
  }
}
