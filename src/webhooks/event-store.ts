import { type Procedure, procedure, type SqlValue, type Step, type Store, statement } from '../database/store.ts';

const insertEvent = statement(
  'insert-event',
  'INSERT INTO events (id, repository_id, kind, source, content, created_at_ms) VALUES ($1, $2, $3, $4, $5, $6)',
);
// One statement decides whose the key is: a live one of another announcement stays, an expired one is taken over.
const claimKey = statement<{ answer: string }>(
  'claim-event-key',
  `INSERT INTO event_keys (repository_id, idempotency_key, fingerprint, answer, expires_at_ms)
   VALUES ($1, $2, $3, $4, $5)
   ON CONFLICT (repository_id, idempotency_key) DO UPDATE
     SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at_ms = excluded.expires_at_ms
     WHERE event_keys.expires_at_ms <= $6
   RETURNING answer`,
);
const keyHolder = statement<KeyHolder>(
  'event-key-holder',
  'SELECT fingerprint, answer FROM event_keys WHERE repository_id = $1 AND idempotency_key = $2',
);
const pruneKeys = statement('prune-event-keys', 'DELETE FROM event_keys WHERE expires_at_ms <= $1');
const pruneEvents = statement('prune-events', 'DELETE FROM events WHERE created_at_ms <= $1');
const eventById = statement<{ content: string }>('event-by-id', 'SELECT content FROM events WHERE id = $1');

interface KeyHolder {
  readonly fingerprint: string;
  readonly answer: string;
}

interface CommitInput {
  readonly event: readonly SqlValue[];
  readonly key: readonly SqlValue[] | undefined;
  readonly deliveries: readonly Step[];
}

/** The event and its deliveries, or, when its key is taken, who took it. */
export const commitEvent: Procedure<CommitInput, KeyHolder | undefined> = procedure(
  import.meta.url,
  'commitEvent',
  async (transaction, { event, key, deliveries }) => {
    if (key !== undefined && (await transaction.run(claimKey, key)).length === 0) {
      const [holder] = await transaction.run(keyHolder, key.slice(0, 2));
      return holder;
    }
    await transaction.run(insertEvent, event);
    for (const step of deliveries) await transaction.run(step.statement, step.parameters);
    return undefined;
  },
);

export interface NewEvent {
  readonly id: number;
  readonly repositoryId: number;
  readonly kind: string;
  readonly source: string;
  readonly content: string;
  readonly nowMs: number;
}

export interface EventKey {
  readonly key: string;
  /** Tells another announcement under the same key from a repetition. */
  readonly fingerprint: string;
  readonly answer: string;
  readonly expiresAtMs: number;
}

export interface EventStore {
  /** Undefined when the event and its deliveries were committed; else the holder of its key. */
  commit(event: NewEvent, key: EventKey | undefined, deliveries: readonly Step[]): Promise<KeyHolder | undefined>;
  readContent(id: number): Promise<string | undefined>;
  prune(nowMs: number, keepEventsMs: number): Promise<void>;
}

export function createEventStore(store: Store): EventStore {
  return {
    commit: (event, key, deliveries) =>
      store.call(commitEvent, {
        event: [event.id, event.repositoryId, event.kind, event.source, event.content, event.nowMs],
        key: key && [event.repositoryId, key.key, key.fingerprint, key.answer, key.expiresAtMs, event.nowMs],
        deliveries,
      }),
    readContent: async (id) => (await store.read(eventById, [id]))[0]?.content,
    prune: async (nowMs, keepEventsMs) => {
      await store.write(pruneKeys, [nowMs]);
      await store.write(pruneEvents, [nowMs - keepEventsMs]);
    },
  };
}
