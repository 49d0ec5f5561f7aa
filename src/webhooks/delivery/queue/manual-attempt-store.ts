/**
 * Changes the hook queue after a manual attempt: ends its pause, counts a failure, or holds it after 410. Any process may make a
 * manual attempt, so no lease fences it. Instead its delivery was reserved, and each statement acts only if the attempt's result
 * counted, in the generation of the hook queue in which it began. After the reservation has expired, a worker makes the attempt and
 * gets its own answer. The statements run in the transaction of the result, after the update of the delivery.
 */
import { type BoundStatement, type Statement, statement } from '../../../database/store.ts';
import { ORIGIN_RECONNECTED, PROBE_REQUESTED } from '../schedule/pause-reason.ts';
import { type AttemptKey, hasCounted } from './attempt-result-store.ts';
import { NEVER_MS } from './delivery-store.ts';

export interface ManualAttempt extends AttemptKey {
  /** The generation of the hook queue when the hook was read for the attempt. */
  readonly generation: number;
}

const recoverHookQueueSql: Statement = statement(
  'endpoint-recover',
  `UPDATE endpoint_queue SET fails = 0, failing_since_ms = NULL, version = version + 1,
     generation = generation + 1, openings = 0, paused_since_ms = NULL,
     pause_reason = CASE WHEN pause_reason IN ('no_connection', '${PROBE_REQUESTED}', '${ORIGIN_RECONNECTED}')
       THEN '${ORIGIN_RECONNECTED}' END,
     next_at_ms = CASE WHEN parked = 1 THEN $2 ELSE next_at_ms END, parked = 0
   WHERE hook_id = $1 AND held_since_ms IS NULL AND canceled_at_ms IS NULL AND generation = $5 AND ${hasCounted('$1', '$3', '$4')}`,
);

/** Ends the pause of a hook whose manual attempt was accepted. */
export function recoverHookQueueStatement(
  { hookId, deliveryId, startedAtMs, generation }: ManualAttempt,
  nowMs: number,
): BoundStatement {
  return { statement: recoverHookQueueSql, parameters: [hookId, nowMs, deliveryId, startedAtMs, generation] };
}

// Counts every attempt once: if the transaction is repeated, the attempt is in the log already.
const countFailureSql: Statement = statement(
  'endpoint-count-failure',
  `UPDATE endpoint_queue SET fails = fails + 1,
     failing_since_ms = CASE WHEN failing_since_ms IS NULL THEN $2 ELSE failing_since_ms END
   WHERE hook_id = $1 AND generation = $6 AND ${hasCounted('$1', '$3', '$4')}
     AND NOT EXISTS (SELECT 1 FROM delivery_attempts a WHERE a.delivery_id = $3 AND a.id = $5)`,
);

export interface FailedAttempt extends ManualAttempt {
  readonly attemptId: number;
}

/** Counts the failure of a manual attempt like any other. Must be executed before the attempt is inserted into the log. */
export function countFailureStatement(
  { hookId, deliveryId, startedAtMs, attemptId, generation }: FailedAttempt,
  nowMs: number,
): BoundStatement {
  return { statement: countFailureSql, parameters: [hookId, nowMs, deliveryId, startedAtMs, attemptId, generation] };
}

const holdAfterManualSql: Statement = statement(
  'endpoint-hold-after-manual',
  `UPDATE endpoint_queue SET held_since_ms = $2, parked = 1, next_at_ms = $3, version = version + 1
   WHERE hook_id = $1 AND held_since_ms IS NULL AND canceled_at_ms IS NULL AND generation = $6 AND ${hasCounted('$1', '$4', '$5')}`,
);

/** Holds the deliveries of a hook whose receiver answered a manual attempt with 410. */
export function holdAfterManualStatement(
  { hookId, deliveryId, startedAtMs, generation }: ManualAttempt,
  nowMs: number,
): BoundStatement {
  return { statement: holdAfterManualSql, parameters: [hookId, nowMs, NEVER_MS, deliveryId, startedAtMs, generation] };
}
