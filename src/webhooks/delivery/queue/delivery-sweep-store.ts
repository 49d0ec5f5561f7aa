/** Expires held deliveries, cancels those of deleted hooks, and deletes old ones, a bounded number in each statement. */
import {
  conditionalProcedure,
  nameStatement,
  type Procedure,
  type Statement,
  type Store,
  statement,
} from '../../../database/store.ts';
import { repeatBatches, type SweepContext } from '../../../database/sweep.ts';
import { bindRows, multiRowStatement } from '../../../database/value-rows.ts';
import { LANE_NUMBERS } from './delivery-state.ts';

// `endpoint` means hook queue, `parked` paused, held or canceled: see delivery-store.ts.
// A scalar subselect: PostgreSQL turns EXISTS into a join and, without statistics, reads all waiting deliveries for it.
const hasPending = (condition = ''): string =>
  `(SELECT d.id FROM deliveries d WHERE d.state = 'pending' AND d.hook_id = endpoint_queue.hook_id
     ${condition} LIMIT 1) IS NOT NULL`;

/**
 * Conditions on pending deliveries that expire, by lane. Each reads a range of the index of waiting deliveries, or the few retries that
 * waited when the hook was disabled, and not the deliveries that came since.
 */
const isExpired = {
  // The 7 days of a delivery that a person requested again begin at that request, which is its due time.
  first: (before: string) => `AND lane = ${LANE_NUMBERS.first} AND due_at_ms < ${before} AND created_at_ms < ${before}`,
  // A retry expires even if it is due later. The time of a reserved delivery begins with its reservation, which begins its schedule.
  retry: (before: string) =>
    `AND lane = ${LANE_NUMBERS.retry} AND created_at_ms < ${before} AND (due_at_ms < ${before} OR attempts > schedule_from)`,
} as const;

const heldHookQueuesSql: Statement<{ hook_id: number }> = statement(
  'sweep-held-endpoints',
  `SELECT hook_id FROM endpoint_queue WHERE held_since_ms < $1 AND canceled_at_ms IS NULL
     AND (${hasPending(isExpired.first('$1'))} OR ${hasPending(isExpired.retry('$1'))}) ORDER BY hook_id`,
);
const canceledHookQueuesSql: Statement<{ hook_id: number }> = statement(
  'sweep-canceled-endpoints',
  `SELECT hook_id FROM endpoint_queue WHERE canceled_at_ms IS NOT NULL AND ${hasPending()} ORDER BY hook_id`,
);

// The conditions are repeated on the row itself: after a wait for a redelivery of the row, PostgreSQL checks those again, and not those
// of the subselect.
const endPendingSql = (state: string, condition: string, limitAt: number) =>
  `UPDATE deliveries SET state = '${state}' WHERE hook_id = $1 AND state = 'pending' ${condition} AND id IN
     (SELECT id FROM deliveries WHERE hook_id = $1 AND state = 'pending' ${condition}
      ORDER BY lane, due_at_ms, id LIMIT $${limitAt})
   RETURNING id`;

type EndSome = Statement<{ id: number }>;
const expireSomeSql: readonly EndSome[] = [
  statement('sweep-expire', endPendingSql('expired', isExpired.first('$2'), 3)),
  statement('sweep-expire-retries', endPendingSql('expired', isExpired.retry('$2'), 3)),
];
const cancelSomeSql: EndSome = statement('sweep-cancel', endPendingSql('canceled', '', 2));

/** Expires deliveries of hook queues that were held before this time, if they were also created and last requested before it. */
export async function expireHeld(store: Store, beforeMs: number, sweeping: SweepContext): Promise<number> {
  let count = 0;
  for (const { hook_id } of await store.read(heldHookQueuesSql, [beforeMs]))
    for (const expireSql of expireSomeSql) {
      const expire = async (limit: number) => (await store.write(expireSql, [hook_id, beforeMs, limit])).length;
      count += await repeatBatches(sweeping, expire);
    }
  return count;
}

/** Cancels pending deliveries of deleted hooks. */
export async function cancelDeleted(store: Store, sweeping: SweepContext): Promise<number> {
  let count = 0;
  for (const { hook_id } of await store.read(canceledHookQueuesSql)) {
    const cancel = async (limit: number) => (await store.write(cancelSomeSql, [hook_id, limit])).length;
    count += await repeatBatches(sweeping, cancel);
  }
  return count;
}

const hookQueuesWithOldSql: Statement<{ hook_id: number }> = statement(
  'sweep-endpoints-with-old',
  `SELECT q.hook_id FROM endpoint_queue q
   WHERE EXISTS (SELECT 1 FROM deliveries d WHERE d.hook_id = q.hook_id AND d.id < $1) ORDER BY q.hook_id`,
);

const deleteSomeSql: Statement<{ id: number }> = statement(
  'sweep-delete-deliveries',
  `DELETE FROM deliveries WHERE hook_id = $1 AND state <> 'pending' AND id IN
     (SELECT f.id FROM deliveries f WHERE f.hook_id = $1 AND f.id < $2 AND f.state <> 'pending' ORDER BY f.id LIMIT $3)
   RETURNING id`,
);
const deleteFrom = (table: string) =>
  multiRowStatement(
    nameStatement('sweep-delete', table),
    { id: 'int' },
    ({ values, v }) => `DELETE FROM ${table} WHERE delivery_id IN (SELECT ${v.id} FROM ${values})`,
  );
const deleteAttemptsSql = deleteFrom('delivery_attempts');
const deleteContentsSql = deleteFrom('delivery_contents');

const deleteUnusedSql: Statement<{ delivery_id: number }> = statement(
  'sweep-delete-unused-contents',
  `DELETE FROM delivery_contents WHERE delivery_id IN
     (SELECT c.delivery_id FROM delivery_contents c WHERE c.delivery_id < $1
        AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.hook_id = c.hook_id AND d.id = c.delivery_id)
      ORDER BY c.delivery_id LIMIT $2)
   RETURNING delivery_id`,
);

/** Deletes contents that were stored ahead of deliveries which were never stored, because the process ended. */
export async function deleteUnusedContents(store: Store, beforeId: number, sweeping: SweepContext): Promise<number> {
  return await repeatBatches(sweeping, async (limit) => (await store.write(deleteUnusedSql, [beforeId, limit])).length);
}

/** Deletes the contents of deliveries that were refused, and will not be stored. */
export async function deleteContentsOf(store: Store, deliveryIds: readonly number[]): Promise<void> {
  const ids = deliveryIds.map((id) => ({ id }));
  if (ids.length > 0) await store.writeAll(bindRows(deleteContentsSql, ids));
}

interface DeleteInput {
  readonly hookId: number;
  readonly beforeId: number;
  readonly limit: number;
}

/** Deletes a page of old deliveries with their attempts and contents in one transaction, so that no orphans remain. */
export const deleteOldDeliveries: Procedure<DeleteInput, number> = conditionalProcedure(
  import.meta.url,
  'deleteOldDeliveries',
  async (transaction, { hookId, beforeId, limit }) => {
    const rows = await transaction.run(deleteSomeSql, [hookId, beforeId, limit]);
    await transaction.runAll([...bindRows(deleteAttemptsSql, rows), ...bindRows(deleteContentsSql, rows)]);
    return rows.length;
  },
);

/** Deletes the log below an id: ids rise with time. */
export async function deleteLogBefore(store: Store, beforeId: number, sweeping: SweepContext): Promise<number> {
  let count = 0;
  for (const { hook_id: hookId } of await store.read(hookQueuesWithOldSql, [beforeId]))
    count += await repeatBatches(sweeping, (limit) => store.call(deleteOldDeliveries, { hookId, beforeId, limit }));
  return count;
}

const forgetHookQueuesSql: Statement<{ hook_id: number }> = statement(
  'sweep-forget-endpoints',
  `DELETE FROM endpoint_queue WHERE canceled_at_ms < $1 AND hook_id IN
     (SELECT q.hook_id FROM endpoint_queue q WHERE q.canceled_at_ms < $1
        AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.hook_id = q.hook_id)
      ORDER BY q.hook_id LIMIT $2)
   RETURNING hook_id`,
);

/** Deletes hook queues of deleted hooks, once their log is deleted. */
export async function forgetDeletedHookQueues(store: Store, beforeMs: number, sweeping: SweepContext): Promise<number> {
  return await repeatBatches(
    sweeping,
    async (limit) => (await store.write(forgetHookQueuesSql, [beforeMs, limit])).length,
  );
}
