import { type Store, statement } from '../../database/store.ts';

const pruneKeysSql = statement('prune-event-keys', 'DELETE FROM event_keys WHERE expires_at_ms <= $1');
const pruneEventsSql = statement('prune-events', 'DELETE FROM events WHERE created_at_ms <= $1');
const eventByIdSql = statement<{ content: string }>('event-by-id', 'SELECT content FROM events WHERE id = $1');

export interface EventStore {
  readContent(id: number): Promise<string | undefined>;
  prune(nowMs: number, keepEventsMs: number): Promise<void>;
}

export function createEventStore(store: Store): EventStore {
  return {
    readContent: async (id) => (await store.read(eventByIdSql, [id]))[0]?.content,
    prune: async (nowMs, keepEventsMs) => {
      await store.write(pruneKeysSql, [nowMs]);
      await store.write(pruneEventsSql, [nowMs - keepEventsMs]);
    },
  };
}
