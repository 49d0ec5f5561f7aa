/**
 * What a worker writes, always for many at once: results, and what they mean for endpoints and hooks. Results are fenced
 * twice: the shard must still be the worker's (owner and epoch), and the delivery must stand where the worker found it
 * (`due_at_ms`, which every result and every redelivery moves). What does not pass the fences was sent all the same: it
 * is counted and logged, and changes nothing else.
 */
import { type Row, type Statement, type Step, statement } from '../../../database/store.ts';
import { renderValueRows, wideStatement, wideSteps } from '../../../database/value-rows.ts';
import type { Pause } from '../schedule/pause.ts';
import { isOpen, NEVER_MS } from './delivery-store.ts';

/** What one attempt was and made of its delivery. */
export interface Settlement {
  readonly deliveryId: number;
  readonly hookId: number;
  /** What the row said before; the settlement moves the delivery only if it still does. */
  readonly foundDueAtMs: number;
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

const SETTLE_TYPES = ['int', 'int', 'int', 'text', 'int', 'int', 'int', 'int', 'int', 'int', 'int'] as const;

const passesFences = `deliveries.due_at_ms = v.column3 AND deliveries.state = 'pending'
  AND (v.column10 = ${OUTSIDE_SHARDS.epoch} OR s.shard IS NOT NULL)`;
const ifMoved = (value: string, column: string) =>
  `${column} = CASE WHEN ${passesFences} THEN ${value} ELSE deliveries.${column} END`;

// Counts every attempt once: the same batch again finds it in the log. COUNT, not EXISTS, which PostgreSQL would make a
// join, and would rather read through the whole log for it when it has no statistics.
const settle = wideStatement<{ id: number }>(
  'delivery_settle',
  (width) =>
    `UPDATE deliveries SET ${ifMoved('v.column4', 'state')}, ${ifMoved('v.column5', 'lane')},
       ${ifMoved('v.column6', 'due_at_ms')}, ${ifMoved('v.column7', 'status')},
       ${ifMoved('v.column8', 'attempted_at_ms')}, attempts = deliveries.attempts + 1
     FROM (VALUES ${renderValueRows(SETTLE_TYPES, width)}) AS v
     LEFT JOIN delivery_shards s ON s.shard = v.column9 AND s.epoch = v.column10 AND s.owner = $${11 * width + 1}
     WHERE deliveries.hook_id = v.column1 AND deliveries.id = v.column2
       AND (SELECT COUNT(*) FROM delivery_attempts a WHERE a.delivery_id = v.column2 AND a.id = v.column11) = 0
     RETURNING deliveries.id`,
);

// After the statement above, which holds the delivery's row until the commit: so numbers are those of the count, and no
// two attempts have one. A delivery that was swept away meanwhile has no count.
const insertAttempts = wideStatement<Row>(
  'delivery_insert_attempts',
  (width) =>
    `INSERT INTO delivery_attempts (delivery_id, id, attempt, started_at_ms, outcome, status, reason, remote_address, detail, response_body)
     VALUES ${Array.from({ length: width }, (_, at) => renderAttempt(at * 11)).join(', ')}
     ON CONFLICT (delivery_id, id) DO NOTHING`,
);

/** `$1`, `$3` and `$11`: the delivery, its number without a count, and its hook. */
function renderAttempt(before: number): string {
  const parameter = (at: number) => `$${before + at}`;
  const count = `SELECT d.attempts FROM deliveries d WHERE d.hook_id = ${parameter(11)} AND d.id = ${parameter(1)}`;
  const rest = [4, 5, 6, 7, 8, 9, 10].map(parameter).join(', ');
  return `(${parameter(1)}, ${parameter(2)}, COALESCE((${count}), ${parameter(3)}), ${rest})`;
}

/** At most one settlement of a delivery. */
export function settleSteps(settlements: readonly Settlement[], owner: string): Step[] {
  const results = settlements.map((one) => [
    one.hookId,
    one.deliveryId,
    one.foundDueAtMs,
    one.state,
    one.lane,
    one.dueAtMs,
    one.attempt.status,
    one.attempt.startedAtMs,
    one.shard,
    one.epoch,
    one.attempt.id,
  ]);
  const attempts = settlements.map(({ deliveryId, hookId, attempts: before, attempt }) => [
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
    hookId,
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
