/** Deletes old events and idempotency keys, and events of a repository that is deleted. */
import { type Store, statement } from '../../database/store.ts';
import { deleteOldSql, repeatBatches, SWEEP_BATCH, type SweepContext, type SweepPace } from '../../database/sweep.ts';

const pruneKeysSql = deleteOldSql({
  table: 'event_keys',
  key: 'repository_id, idempotency_key',
  time: 'expires_at_ms',
});
const pruneEventsSql = deleteOldSql({ table: 'events', key: 'id', time: 'created_at_ms' });
const newestOfRepositorySql = statement<{ id: number | null }>(
  'newest-event-of-repository',
  'SELECT MAX(id) AS id FROM events WHERE repository_id = $1',
);
const deleteOfRepositorySql = statement<{ id: number }>(
  'delete-events-of-repository',
  `DELETE FROM events WHERE id IN
     (SELECT id FROM events WHERE repository_id = $1 AND id <= $2 ORDER BY repository_id, id LIMIT $3)
   RETURNING id`,
);

/** Deletes idempotency keys that have expired. */
export async function pruneEventKeys(store: Store, nowMs: number, sweeping: SweepContext): Promise<number> {
  return await repeatBatches(sweeping, async (limit) => (await store.write(pruneKeysSql, [nowMs, limit])).length);
}

/** Deletes events that were stored at that time or before. */
export async function pruneEvents(store: Store, untilMs: number, sweeping: SweepContext): Promise<number> {
  return await repeatBatches(sweeping, async (limit) => (await store.write(pruneEventsSql, [untilMs, limit])).length);
}

const MAX_ROUNDS = 5;

/**
 * Deletes the events of a repository in batches, until few are left: a month of events in one transaction would block the intake of all
 * owners. Each round deletes only events that existed when it began, so that it ends even while more events arrive.
 */
export async function deleteEventsOfRepository(store: Store, repositoryId: number, pace: SweepPace): Promise<void> {
  for (let rounds = 0; rounds < MAX_ROUNDS; rounds += 1) {
    const [newest] = await store.read(newestOfRepositorySql, [repositoryId]);
    if (typeof newest?.id !== 'number') return;
    const range = [repositoryId, newest.id];
    const count = await repeatBatches(
      pace,
      async (limit) => (await store.write(deleteOfRepositorySql, [...range, limit])).length,
    );
    if (count < SWEEP_BATCH) return;
  }
}
