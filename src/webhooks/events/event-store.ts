import { type Store, statement } from '../../database/store.ts';

const pruneKeysSql = statement('prune-event-keys', 'DELETE FROM event_keys WHERE expires_at_ms <= $1');
const pruneEventsSql = statement('prune-events', 'DELETE FROM events WHERE created_at_ms <= $1');

/** Deletes idempotency keys that have expired, and events that are older than `keepEventsMs`. */
export async function pruneEvents(store: Store, nowMs: number, keepEventsMs: number): Promise<void> {
  await store.write(pruneKeysSql, [nowMs]);
  await store.write(pruneEventsSql, [nowMs - keepEventsMs]);
}
