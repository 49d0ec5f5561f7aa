/**
 * Stores the results of attempts, many at once. Two fences guard each result: the shard must still be the worker's (owner
 * and epoch), and the delivery must stand where the worker found it (`due_at_ms`, which every result and every redelivery
 * moves). An attempt that does not pass them was made all the same: it is counted and logged, and changes nothing else.
 */
import type { Row, Step } from '../../../database/store.ts';
import { renderValueRows, wideStatement, wideSteps } from '../../../database/value-rows.ts';

/** One attempt and the new state of its delivery. */
export interface AttemptResult {
  readonly deliveryId: number;
  readonly hookId: number;
  /** The row's due time when it was read; the delivery moves only if it is still the same. */
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

/** The place of an attempt that belongs to no shard, such as a manual one. */
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

/** At most one result a delivery. */
export function attemptResultSteps(attemptResults: readonly AttemptResult[], workerId: string): Step[] {
  const results = attemptResults.map((one) => [
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
  const attempts = attemptResults.map(({ deliveryId, hookId, attempts: before, attempt }) => [
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
  return [...wideSteps(settle, results, [workerId]), ...wideSteps(insertAttempts, attempts)];
}
