/**
 * What a worker writes, always for many at once: results, and what they mean for endpoints and hooks. Results are fenced
 * twice: the shard must still be the worker's (owner and epoch), and the delivery must stand where the worker found it
 * (`attempts`).
 */
import { type Row, type Statement, type Step, statement } from '../database/store.ts';
import { renderInsertRows, renderValueRows, wideStatement, wideSteps } from '../database/value-rows.ts';
import type { Pause } from './delivery/schedule/pause.ts';
import { isOpen, isStillPending, NEVER_MS } from './delivery-store.ts';

/** What one attempt was and made of its delivery. */
export interface Settlement {
  readonly deliveryId: number;
  readonly hookId: number;
  /** What the row said before; the settlement counts only if it still does. */
  readonly attempts: number;
  readonly shard: number;
  /** The worker's epoch of the shard. */
  readonly epoch: number;
  readonly state: string;
  readonly lane: number;
  readonly dueAtMs: number;
  readonly attempt: AttemptRecord;
}

export interface AttemptRecord {
  readonly id: number;
  readonly startedAtMs: number;
  readonly outcome: string;
  readonly status: number;
  readonly reason: string | null;
  readonly remoteAddress: string | null;
  /** JSON: request and response headers, timings. */
  readonly detail: string;
  readonly responseBody: Uint8Array | null;
}

/** Of an attempt outside of any shard, like a test's. */
export const OUTSIDE_SHARDS = { shard: 0, epoch: -1 } as const;

const SETTLE_TYPES = ['int', 'int', 'int', 'text', 'int', 'int', 'int', 'int', 'int', 'int'] as const;

const settle = wideStatement<{ id: number }>(
  'delivery_settle',
  (width) =>
    `UPDATE deliveries SET state = v.column4, lane = v.column5, due_at_ms = v.column6, status = v.column7,
       attempted_at_ms = v.column8, attempts = deliveries.attempts + 1
     FROM (VALUES ${renderValueRows(SETTLE_TYPES, width)}) AS v
     WHERE deliveries.hook_id = v.column1 AND deliveries.id = v.column2 AND deliveries.attempts = v.column3
       AND ${isStillPending('deliveries')}
       AND (v.column10 = ${OUTSIDE_SHARDS.epoch} OR EXISTS (SELECT 1 FROM delivery_shards s
            WHERE s.shard = v.column9 AND s.epoch = v.column10 AND s.owner = $${10 * width + 1}))
     RETURNING deliveries.id`,
);

// What was sent was sent: a row of the log, whoever settles. The same batch again changes nothing.
const insertAttempts = wideStatement<Row>(
  'delivery_insert_attempts',
  (width) =>
    `INSERT INTO delivery_attempts (delivery_id, id, attempt, started_at_ms, outcome, status, reason, remote_address, detail, response_body)
     VALUES ${renderInsertRows(10, width)} ON CONFLICT (delivery_id, id) DO NOTHING`,
);

export function settleSteps(settlements: readonly Settlement[], owner: string): Step[] {
  const results = settlements.map((one) => [
    one.hookId,
    one.deliveryId,
    one.attempts,
    one.state,
    one.lane,
    one.dueAtMs,
    one.attempt.status,
    one.attempt.startedAtMs,
    one.shard,
    one.epoch,
  ]);
  const attempts = settlements.map(({ deliveryId, attempts: before, attempt }) => [
    deliveryId,
    attempt.id,
    before + 1,
    attempt.startedAtMs,
    attempt.outcome,
    attempt.status,
    attempt.reason,
    attempt.remoteAddress,
    attempt.detail,
    attempt.responseBody,
  ]);
  return [...wideSteps(settle, results, [owner]), ...wideSteps(insertAttempts, attempts)];
}

export interface EndpointChange {
  readonly hookId: number;
  readonly fails: number;
  readonly failingSinceMs: number | null;
  /** How often the hook's breaker opened since it was last closed. */
  readonly openings: number;
  /** Null when it may send. */
  readonly pause: Pause | null;
}

// −1 and '' stand for null: a list of values has one type a column.
const changeEndpoints = wideStatement<Row>(
  'endpoint_change',
  (width) =>
    `UPDATE endpoint_queue SET fails = v.column2,
       failing_since_ms = CASE WHEN v.column3 = -1 THEN NULL ELSE v.column3 END,
       parked = CASE WHEN v.column4 = -1 THEN 0 ELSE 1 END,
       next_at_ms = CASE WHEN v.column4 = -1 THEN endpoint_queue.next_at_ms ELSE v.column4 END,
       paused_since_ms = CASE WHEN v.column4 = -1 THEN NULL ELSE v.column5 END,
       pause_reason = CASE WHEN v.column4 = -1 THEN NULL ELSE v.column6 END,
       openings = v.column7
     FROM (VALUES ${renderValueRows(['int', 'int', 'int', 'int', 'int', 'text', 'int'], width)}) AS v
     WHERE endpoint_queue.hook_id = v.column1
       AND ${isOpen}`,
);

export function endpointSteps(changes: readonly EndpointChange[]): Step[] {
  const rows = changes.map(({ hookId, fails, failingSinceMs, openings, pause }) => [
    hookId,
    fails,
    failingSinceMs ?? -1,
    pause?.untilMs ?? -1,
    pause?.sinceMs ?? -1,
    pause?.reason ?? '',
    openings,
  ]);
  return wideSteps(changeEndpoints, rows);
}

export interface Rest {
  readonly hookId: number;
  readonly version: number;
}

const headDue = (lane: number) =>
  `COALESCE((SELECT d.due_at_ms FROM deliveries d WHERE d.state = 'pending' AND d.hook_id = endpoint_queue.hook_id
     AND d.lane = ${lane} ORDER BY d.due_at_ms, d.id LIMIT 1), ${NEVER_MS})`;

// Only if nothing was enqueued since it was read, and after the settlements of the same unit.
const restEndpoints = wideStatement<{ hook_id: number }>(
  'endpoint_rest',
  (width) =>
    `UPDATE endpoint_queue SET parked = 0, paused_since_ms = NULL, pause_reason = NULL,
       next_at_ms = CASE WHEN ${headDue(0)} < ${headDue(1)} THEN ${headDue(0)} ELSE ${headDue(1)} END
     FROM (VALUES ${renderValueRows(['int', 'int'], width)}) AS v
     WHERE endpoint_queue.hook_id = v.column1 AND endpoint_queue.version = v.column2
       AND ${isOpen}
     RETURNING endpoint_queue.hook_id`,
);

/** The endpoint has nothing due: it sleeps until its next retry, or until something is enqueued. */
export function restSteps(rests: readonly Rest[]): Step[] {
  const rows = rests.map(({ hookId, version }) => [hookId, version]);
  return wideSteps(restEndpoints, rows);
}

export interface HookResult {
  readonly hookId: number;
  readonly result: string;
  readonly status: number;
}

const writeResults = wideStatement<Row>(
  'hook_write_result',
  (width) =>
    `UPDATE hooks SET result = v.column2, result_code = v.column3
     FROM (VALUES ${renderValueRows(['int', 'text', 'int'], width)}) AS v WHERE hooks.id = v.column1`,
);

/** What the hook shows as its last answer. One row a hook. */
export function hookResultSteps(results: readonly HookResult[]): Step[] {
  const rows = results.map(({ hookId, result, status }) => [hookId, result, status]);
  return wideSteps(writeResults, rows);
}

const disableHook: Statement = statement(
  'hook_disable_failing',
  `UPDATE hooks SET disabled_at_ms = $2, disabled_reason = $3, updated_at_ms = $2 WHERE id = $1 AND disabled_at_ms IS NULL`,
);

export function disableHookStep(hookId: number, reason: string, nowMs: number): Step {
  return { statement: disableHook, parameters: [hookId, nowMs, reason] };
}
