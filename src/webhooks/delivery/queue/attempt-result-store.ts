/**
 * Stores results of attempts in batches; a late result of a worker that lost its lease changes nothing (fencing). Two fences
 * guard each result: the worker must still own the shard (owner and epoch), and the delivery must still have the due time that
 * the worker read (`due_at_ms`, which every result and every redelivery changes). A result that fails a fence is logged, and its
 * attempt is counted, but not in the present schedule; the delivery does not change. If the lease was lost, its hook does not change
 * either. If only the delivery has changed, the outcome counts for the health of the hook (`hook-queue-change-store.ts`,
 * `manual-attempt-store.ts`, `hook-result-store.ts`).
 */
import type { BoundStatement } from '../../../database/store.ts';
import { bindRows, multiRowStatement } from '../../../database/value-rows.ts';

/** One attempt and the new state of its delivery. */
export interface AttemptResult {
  readonly deliveryId: number;
  readonly hookId: number;
  /** The row's due time when it was read; the delivery changes only if it is still the same. */
  readonly foundDueAtMs: number;
  /** How many attempts its row had counted when it was read. */
  readonly attemptsBefore: number;
  readonly shard: number;
  /** The worker's epoch of the shard. */
  readonly epoch: number;
  /** The generation of the hook queue when the hook was read for the attempt. */
  readonly generation: number;
  readonly nextState: string;
  readonly nextLane: number;
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

/** Shard and epoch of a manual attempt: the fence of shard and epoch does not apply to it. */
export const OUTSIDE_SHARDS = { shard: 0, epoch: -1 } as const;

/** Condition: this worker holds the lease of the shard, in this epoch. */
export function holdsLease(shard: string, epoch: string, owner: string): string {
  // COUNT instead of EXISTS: see `storeResultsSql`.
  return `(SELECT COUNT(*) FROM delivery_shards s WHERE s.shard = ${shard} AND s.epoch = ${epoch} AND s.owner = ${owner}) > 0`;
}

/** Identifies an attempt by what its result writes into the row of its delivery. */
export interface AttemptKey {
  readonly hookId: number;
  readonly deliveryId: number;
  readonly startedAtMs: number;
}

/** Condition: the result of this attempt has passed its fences. Only then is its start time in the row (`attempted_at_ms`). */
export function hasCounted(hookId: string, deliveryId: string, startedAtMs: string): string {
  return `(SELECT COUNT(*) FROM deliveries d
    WHERE d.hook_id = ${hookId} AND d.id = ${deliveryId} AND d.attempted_at_ms = ${startedAtMs}) > 0`;
}

// Counts every attempt once. A batch is repeated if it is unknown whether it was committed; the repetition finds its attempts in the
// log, and changes nothing. Batches of one worker wait for each other (`result-writer.ts`), so the first has ended by then.
// COUNT instead of EXISTS: PostgreSQL turns EXISTS into a join and, without statistics, reads the whole log for it.
// settle = store results: see delivery-store.ts.
const storeResultsSql = multiRowStatement(
  'delivery-settle',
  {
    hookId: 'int',
    deliveryId: 'int',
    foundDueAtMs: 'int',
    nextState: 'text',
    nextLane: 'int',
    dueAtMs: 'int',
    status: 'int',
    startedAtMs: 'int',
    shard: 'int',
    epoch: 'int',
    attemptId: 'int',
  },
  ({ values, v, more }) => {
    const passesFences = `deliveries.due_at_ms = ${v.foundDueAtMs} AND deliveries.state = 'pending'
      AND (${v.epoch} = ${OUTSIDE_SHARDS.epoch} OR s.shard IS NOT NULL)`;
    const ifMoved = (column: string, value: string) =>
      `${column} = CASE WHEN ${passesFences} THEN ${value} ELSE deliveries.${column} END`;
    return `UPDATE deliveries SET ${ifMoved('state', v.nextState)}, ${ifMoved('lane', v.nextLane)},
       ${ifMoved('due_at_ms', v.dueAtMs)}, ${ifMoved('status', v.status)},
       ${ifMoved('attempted_at_ms', v.startedAtMs)}, attempts = deliveries.attempts + 1,
       schedule_from = CASE WHEN ${passesFences} THEN deliveries.schedule_from ELSE deliveries.schedule_from + 1 END
     FROM ${values}
     LEFT JOIN delivery_shards s ON s.shard = ${v.shard} AND s.epoch = ${v.epoch} AND s.owner = ${more(1)}
     WHERE deliveries.hook_id = ${v.hookId} AND deliveries.id = ${v.deliveryId}
       AND (SELECT COUNT(*) FROM delivery_attempts a
            WHERE a.delivery_id = ${v.deliveryId} AND a.id = ${v.attemptId}) = 0
     RETURNING deliveries.id`;
  },
);

// Runs after the statement above, which locks the delivery's row until the commit. So the number of an attempt is the count in that
// row, and no two attempts have the same number. If the delivery was deleted meanwhile, `numberWithoutCount` is used. Each placeholder
// is bound once (`toSqliteParameters`), so the id is passed a second time as `countedId`.
const insertAttemptsSql = multiRowStatement(
  'delivery-insert-attempts',
  {
    deliveryId: 'int',
    id: 'int',
    hookId: 'int',
    countedId: 'int',
    numberWithoutCount: 'int',
    startedAtMs: 'int',
    outcome: 'text',
    status: 'int',
    reason: 'text',
    remoteAddress: 'text',
    detail: 'text',
    responseBody: 'blob',
  },
  ({ each }) => {
    const rows = each((p) => {
      const count = `SELECT d.attempts FROM deliveries d WHERE d.hook_id = ${p.hookId} AND d.id = ${p.countedId}`;
      return `(${p.deliveryId}, ${p.id}, COALESCE((${count}), ${p.numberWithoutCount}), ${p.startedAtMs}, ${p.outcome},
        ${p.status}, ${p.reason}, ${p.remoteAddress}, ${p.detail}, ${p.responseBody})`;
    });
    return `INSERT INTO delivery_attempts (delivery_id, id, attempt, started_at_ms, outcome, status, reason, remote_address, detail, response_body)
     VALUES ${rows.join(', ')} ON CONFLICT (delivery_id, id) DO NOTHING`;
  },
);

/**
 * Takes at most one result for each delivery. The statements `between` run after the update of deliveries and before the log is
 * written, so that they can distinguish a new attempt from one that is in the log already.
 */
export function attemptResultStatements(
  results: readonly AttemptResult[],
  workerId: string,
  between: readonly BoundStatement[] = [],
): BoundStatement[] {
  const moves = results.map(({ attempt, ...result }) => ({
    ...result,
    status: attempt.status,
    startedAtMs: attempt.startedAtMs,
    attemptId: attempt.id,
  }));
  const attempts = results.map(({ deliveryId, hookId, attemptsBefore, attempt }) => ({
    ...attempt,
    deliveryId,
    hookId,
    countedId: deliveryId,
    numberWithoutCount: attemptsBefore + 1,
  }));
  return [
    ...bindRows(storeResultsSql, moves, { more: [workerId] }),
    ...between,
    ...bindRows(insertAttemptsSql, attempts),
  ];
}
