/** Reads the status of hooks: waiting deliveries, pause or hold with its reason, failures, and the last 24 hours. */
import { type Row, type Statement, type Store, statement } from '../../database/store.ts';
import { findRowBehind, listNewestFirst } from '../delivery/log/log-windows-store.ts';
import type { Pause, PauseReason } from '../delivery/schedule/pause-reason.ts';
import { BY_OWNER } from './troubled-hooks-store.ts';

/** Deliveries are counted up to this limit, so that a page does not cost more when a hook has failed for a week. */
export const COUNT_LIMIT = 10_000;
export const CHART_LIMIT = 5_000;
const HOUR_MS = 3_600_000;
export const CHART_HOURS = 24;

interface HookQueueRow extends Row {
  readonly fails: number;
  readonly failing_since_ms: number | null;
  readonly held_since_ms: number | null;
  readonly waiting: number;
}

const hookQueueStatusSql: Statement<HookQueueRow> = statement(
  'endpoint-status',
  `SELECT fails, failing_since_ms, held_since_ms,
     (SELECT COUNT(*) FROM (SELECT 1 FROM deliveries d WHERE d.hook_id = $1 AND d.state = 'pending' LIMIT $2) AS counted)
       AS waiting
   FROM endpoint_queue WHERE hook_id = $1`,
);

// A delivery that was attempted and not accepted counts as failed, also while it waits for another attempt.
const outcomesByHourSql: Statement<{ hour: number; outcome: string; count: number }> = statement(
  'delivery-outcomes-by-hour',
  `SELECT hour, outcome, COUNT(*) AS count FROM (
     SELECT (created_at_ms - $2) / ${HOUR_MS} AS hour,
       CASE WHEN state = 'succeeded' THEN 'succeeded'
            WHEN state = 'canceled' OR (state = 'pending' AND attempts = 0) THEN 'waiting' ELSE 'failed' END AS outcome
     FROM deliveries WHERE hook_id = $1 AND created_at_ms >= $2 AND id >= $3 AND id < $4) AS judged
   GROUP BY hour, outcome`,
);

interface HookCountsRow extends Row {
  readonly repository_id: number;
  readonly hooks: number;
  readonly disabled: number;
  readonly switched_off: number;
  readonly failing: number;
}

const countHooksOfOwnerSql: Statement<HookCountsRow> = statement(
  'count-hooks-of-owner',
  `SELECT h.repository_id, COUNT(*) AS hooks,
     COUNT(CASE WHEN h.disabled_reason = $2 THEN NULL ELSE h.disabled_at_ms END) AS disabled,
     COUNT(CASE WHEN h.disabled_reason = $2 THEN h.disabled_at_ms END) AS switched_off,
     COUNT(CASE WHEN h.disabled_at_ms IS NULL THEN q.failing_since_ms END) AS failing
   FROM repositories r JOIN hooks h ON h.repository_id = r.id LEFT JOIN endpoint_queue q ON q.hook_id = h.id
   WHERE r.owner_id = $1 GROUP BY h.repository_id`,
);

export interface HookCounts {
  readonly hooks: number;
  /** Hooks that the service disabled because of failures. */
  readonly disabled: number;
  /** Hooks that their owner switched off. */
  readonly switchedOff: number;
  /** Enabled hooks without an accepted attempt since the first failure. */
  readonly failing: number;
}

/** Counts by the repository's id; a repository without hooks is absent. */
export async function countHooksByRepository(store: Store, ownerId: string): Promise<Map<number, HookCounts>> {
  const rows = await store.read(countHooksOfOwnerSql, [ownerId, BY_OWNER]);
  return new Map(
    rows.map(({ repository_id, hooks, disabled, switched_off, failing }) => [
      repository_id,
      { hooks, disabled, switchedOff: switched_off, failing },
    ]),
  );
}

export interface HookQueueStatus {
  /** Failed attempts since the last that was accepted. */
  readonly fails: number;
  readonly failingSinceMs: number | null;
  readonly heldSinceMs: number | null;
  /** Pending or held; `COUNT_LIMIT` means at least this many. */
  readonly waiting: number;
}

export async function readHookQueueStatus(store: Store, hookId: number): Promise<HookQueueStatus> {
  const [row] = await store.read(hookQueueStatusSql, [hookId, COUNT_LIMIT]);
  return {
    fails: row?.fails ?? 0,
    failingSinceMs: row?.failing_since_ms ?? null,
    heldSinceMs: row?.held_since_ms ?? null,
    waiting: row?.waiting ?? 0,
  };
}

interface HoldRow extends Row {
  readonly hook_id: number;
  readonly parked: number;
  readonly next_at_ms: number;
  readonly paused_since_ms: number | null;
  readonly pause_reason: PauseReason | null;
  readonly held_since_ms: number | null;
}

const HOLD_COLUMNS = 'q.hook_id, q.parked, q.next_at_ms, q.paused_since_ms, q.pause_reason, q.held_since_ms';

const holdOfHookSql: Statement<HoldRow> = statement(
  'endpoint-hold-of-hook',
  `SELECT ${HOLD_COLUMNS} FROM endpoint_queue q WHERE q.hook_id = $1`,
);

const holdsOfRepositorySql: Statement<HoldRow> = statement(
  'endpoint-holds-of-repository',
  `SELECT ${HOLD_COLUMNS} FROM hooks h JOIN endpoint_queue q ON q.hook_id = h.id WHERE h.repository_id = $1`,
);

/** Whether and why no delivery of a hook is sent. */
export interface HookHold {
  /** The hook is disabled. */
  readonly isHeld: boolean;
  /** Undefined without a pause, also if it has just ended. */
  readonly pause: Pause | undefined;
}

export async function readHold(store: Store, hookId: number, nowMs: number): Promise<HookHold> {
  const [row] = await store.read(holdOfHookSql, [hookId]);
  return { isHeld: row !== undefined && row.held_since_ms !== null, pause: row && toPause(row, nowMs) };
}

/** Pauses by the hook's id; hooks without a pause are absent. */
export async function readPauses(store: Store, repositoryId: number, nowMs: number): Promise<Map<number, Pause>> {
  const pauses = new Map<number, Pause>();
  for (const row of await store.read(holdsOfRepositorySql, [repositoryId])) {
    const pause = toPause(row, nowMs);
    if (pause !== undefined) pauses.set(row.hook_id, pause);
  }
  return pauses;
}

const pausesByReasonSql: Statement<{ pause_reason: PauseReason; count: number }> = statement(
  'endpoint-pauses-by-reason',
  `SELECT pause_reason, COUNT(*) AS count FROM endpoint_queue
   WHERE parked = 1 AND next_at_ms > $1 AND held_since_ms IS NULL AND canceled_at_ms IS NULL AND pause_reason IS NOT NULL
   GROUP BY pause_reason`,
);

export async function countPauses(store: Store, nowMs: number): Promise<ReadonlyMap<PauseReason, number>> {
  const rows = await store.read(pausesByReasonSql, [nowMs]);
  return new Map(rows.map(({ pause_reason, count }) => [pause_reason, count]));
}

function toPause(row: HoldRow, nowMs: number): Pause | undefined {
  const { parked, held_since_ms, next_at_ms: untilMs, paused_since_ms, pause_reason: reason } = row;
  if (parked === 0 || held_since_ms !== null || untilMs <= nowMs) return undefined;
  // An older version paused the row, and stored no reason.
  if (paused_since_ms === null || reason === null) return { sinceMs: nowMs, untilMs, reason: 'failures' };
  return { sinceMs: paused_since_ms, untilMs, reason };
}

/** The states of the deliveries that were created in one hour. */
export interface HourOfDeliveries {
  readonly startMs: number;
  readonly succeeded: number;
  readonly failed: number;
  /** Not attempted yet, or canceled. */
  readonly waiting: number;
}

/** The last 24 hours, oldest first, by the creation of deliveries; of the newest `CHART_LIMIT` deliveries. */
export async function readLastDay(store: Store, hookId: number, nowMs: number): Promise<HourOfDeliveries[]> {
  const sinceMs = nowMs - CHART_HOURS * HOUR_MS;
  const rows = await readOutcomes(store, hookId, sinceMs);
  const countOf = (hour: number, outcome: string) =>
    rows.filter((row) => row.hour === hour && row.outcome === outcome).reduce((sum, { count }) => sum + count, 0);
  return Array.from({ length: CHART_HOURS }, (_, hour) => ({
    startMs: sinceMs + hour * HOUR_MS,
    succeeded: countOf(hour, 'succeeded'),
    failed: countOf(hour, 'failed'),
    waiting: countOf(hour, 'waiting'),
  }));
}

/** Reads the log in parts between which other requests run, since a page shows up to fifty hooks. */
async function readOutcomes(store: Store, hookId: number, sinceMs: number) {
  const all = { hookId, fromId: 0, beforeId: Number.MAX_SAFE_INTEGER };
  const omitted = await findRowBehind(store, all, CHART_LIMIT);
  const rows = [];
  for await (const { fromId, beforeId } of listNewestFirst(store, { ...all, fromId: (omitted ?? -1) + 1 }))
    rows.push(...(await store.read(outcomesByHourSql, [hookId, sinceMs, fromId, beforeId])));
  return rows;
}
