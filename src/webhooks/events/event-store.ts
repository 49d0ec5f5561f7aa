/** Deletes old events and idempotency keys. */
import type { Store } from '../../database/store.ts';
import { deleteOldSql, repeatBatches, type SweepContext } from '../../database/sweep.ts';

const pruneKeysSql = deleteOldSql({
  table: 'event_keys',
  key: 'repository_id, idempotency_key',
  time: 'expires_at_ms',
});
const pruneEventsSql = deleteOldSql({ table: 'events', key: 'id', time: 'created_at_ms' });

/** Deletes idempotency keys that have expired. */
export async function pruneEventKeys(store: Store, nowMs: number, sweeping: SweepContext): Promise<number> {
  return await repeatBatches(sweeping, async (limit) => (await store.write(pruneKeysSql, [nowMs, limit])).length);
}

/** Deletes events that were stored at that time or before. */
export async function pruneEvents(store: Store, untilMs: number, sweeping: SweepContext): Promise<number> {
  return await repeatBatches(sweeping, async (limit) => (await store.write(pruneEventsSql, [untilMs, limit])).length);
}
