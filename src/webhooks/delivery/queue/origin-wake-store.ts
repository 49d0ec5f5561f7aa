/** Finds the hook queues that are paused because connections to their origin failed, and makes them due. */
import { type Statement, type Store, statement } from '../../../database/store.ts';

const waitsForOrigin = `origin = $1 AND parked = 1 AND pause_reason = 'no_connection'
  AND held_since_ms IS NULL AND canceled_at_ms IS NULL`;
const waitingForOriginSql = statement<{ hook_id: number }>(
  'endpoints-waiting-for-origin',
  `SELECT hook_id FROM endpoint_queue WHERE ${waitsForOrigin} ORDER BY hook_id`,
);
const wakeOfOriginSql: Statement = statement(
  'endpoint-wake-of-origin',
  `UPDATE endpoint_queue SET parked = 0, next_at_ms = $3, version = version + 1 WHERE hook_id = $2 AND ${waitsForOrigin}`,
);

/** The hooks whose queues are paused only because their origin refused connections, in ascending order. */
export async function listWaitingForOrigin(store: Store, origin: string): Promise<number[]> {
  return (await store.read(waitingForOriginSql, [origin])).map((row) => row.hook_id);
}

/**
 * Makes these hook queues due, if they still are paused only because their origin refused connections. Row by row in ascending
 * order, since one statement would lock the rows in an undefined order.
 */
export async function wakeForOrigin(
  store: Store,
  { origin, hookIds }: { readonly origin: string; readonly hookIds: readonly number[] },
  nowMs: number,
): Promise<void> {
  if (hookIds.length === 0) return;
  await store.writeAll(hookIds.map((hookId) => ({ statement: wakeOfOriginSql, parameters: [origin, hookId, nowMs] })));
}
