/** Stores events and their deliveries in one transaction, except events with an idempotency key of the last 24 hours (duplicates). */
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  type Store,
  statement,
  type Transaction,
} from '../../database/store.ts';
import { bindRowsExactly, multiRowInsert } from '../../database/value-rows.ts';
import { Failure } from '../../errors.ts';
import {
  type EnqueueVersions,
  enqueueStatements,
  type NewDelivery,
  readEnqueueVersions,
} from '../delivery/queue/delivery-store.ts';

const insertEventsSql = multiRowInsert('insert-events', 'events', {
  id: 'int',
  repository_id: 'int',
  kind: 'text',
  source: 'text',
  content: 'text',
  created_at_ms: 'int',
});
const insertKeysSql = multiRowInsert('insert-event-keys', 'event_keys', {
  repository_id: 'int',
  idempotency_key: 'text',
  fingerprint: 'text',
  answer: 'text',
  expires_at_ms: 'int',
});
// One statement decides which event gets the key: an earlier event keeps it until it expires. The statement waits for another
// transaction that is storing the same key.
const reserveKeySql = statement<{ answer: string }>(
  'claim-event-key',
  `INSERT INTO event_keys (repository_id, idempotency_key, fingerprint, answer, expires_at_ms)
   VALUES ($1, $2, $3, $4, $5)
   ON CONFLICT (repository_id, idempotency_key) DO UPDATE
     SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at_ms = excluded.expires_at_ms
     WHERE event_keys.expires_at_ms <= $6
   RETURNING answer`,
);
const earlierEventSql = statement<EarlierEvent>(
  'event-key-found',
  'SELECT fingerprint, answer FROM event_keys WHERE repository_id = $1 AND idempotency_key = $2',
);

const liveEarlierEventSql = statement<EarlierEvent>(
  'live-event-key-found',
  `SELECT fingerprint, answer FROM event_keys
   WHERE repository_id = $1 AND idempotency_key = $2 AND expires_at_ms > $3`,
);

/** Finds an earlier event with this key. Only the commit decides; this look-up saves work for a repeated event. */
export async function findEarlierEvent(
  store: Store,
  repositoryId: number,
  { key, nowMs }: { readonly key: string; readonly nowMs: number },
): Promise<EarlierEvent | undefined> {
  return (await store.read(liveEarlierEventSql, [repositoryId, key, nowMs]))[0];
}

/** The event that was stored before with the same idempotency key. */
export interface EarlierEvent {
  readonly fingerprint: string;
  /** Its receipt, as JSON. */
  readonly answer: string;
}

export interface EventKey {
  readonly key: string;
  /** A digest of the event, which distinguishes a repetition from another event with the same key. */
  readonly fingerprint: string;
  readonly answer: string;
  readonly expiresAtMs: number;
}

export interface NewEvent {
  readonly id: number;
  readonly repositoryId: number;
  readonly kind: string;
  readonly source: string;
  readonly content: string;
  readonly nowMs: number;
  readonly key: EventKey | undefined;
  readonly deliveries: readonly NewDelivery[];
}

export interface StoredEvents {
  /** The earlier event with the key of each event; undefined if the event was stored. */
  readonly earlier: readonly (EarlierEvent | undefined)[];
  readonly versions: EnqueueVersions;
}

/**
 * Stores the events, except those whose key an earlier event has. All transactions lock in the same order: keys by repository and key,
 * then hook queues by hook.
 */
export const commitEvents: Procedure<readonly NewEvent[], StoredEvents> = conditionalProcedure(
  import.meta.url,
  'commitEvents',
  async (transaction, events) => {
    const earlier = await reserveKeys(transaction, events);
    const answers = await transaction.runAll(eventStatements(events.filter((event) => !earlier.has(event))));
    return { earlier: events.map((event) => earlier.get(event)), versions: readEnqueueVersions(answers) };
  },
);

/**
 * Stores the events in one round trip, since no statement depends on the result of another. If any key or id is taken, perhaps by an
 * expired key, nothing is stored, and it throws `conflict` with `isDuplicate`.
 */
export async function insertEvents(store: Store, events: readonly NewEvent[]): Promise<StoredEvents> {
  const keys = listKeys(events).map(({ event, key }) => ({
    repository_id: event.repositoryId,
    idempotency_key: key.key,
    fingerprint: key.fingerprint,
    answer: key.answer,
    expires_at_ms: key.expiresAtMs,
  }));
  const statements = [...bindRowsExactly(insertKeysSql, keys), ...eventStatements(events)];
  const answers = await store.writeAll(statements, { inOneTrip: true });
  return { earlier: [], versions: readEnqueueVersions(answers) };
}

function eventStatements(events: readonly NewEvent[]): BoundStatement[] {
  const rows = events.map(({ id, repositoryId, kind, source, content, nowMs }) => ({
    id,
    repository_id: repositoryId,
    kind,
    source,
    content,
    created_at_ms: nowMs,
  }));
  return [...bindRowsExactly(insertEventsSql, rows), ...enqueueStatements(events.flatMap((event) => event.deliveries))];
}

async function reserveKeys(
  transaction: Transaction,
  events: readonly NewEvent[],
): Promise<ReadonlyMap<NewEvent, EarlierEvent>> {
  const earlier = new Map<NewEvent, EarlierEvent>();
  let open: readonly KeyRequest[] = listKeys(events);
  for (let tries = 0; tries < MAX_TRIES && open.length > 0; tries += 1) {
    const reserved = await transaction.runAll(open.map(reserveStatement));
    const refused = open.filter((_, index) => reserved[index]!.length === 0);
    const found = (await transaction.runAll(refused.map(earlierEventStatement))) as unknown as EarlierEvent[][];
    for (const [index, [one]] of found.entries()) if (one !== undefined) earlier.set(refused[index]!.event, one);
    // A key that was refused and then not found has expired and was deleted in between, so it is free now.
    open = refused.filter(({ event }) => !earlier.has(event));
  }
  if (open.length > 0) throw refuseKeyInUse();
  return earlier;
}

/** The keys in the order in which they are locked. The sort is stable: of two events with one key, the first to arrive gets it. */
function listKeys(events: readonly NewEvent[]): readonly KeyRequest[] {
  const requests = events.flatMap((event) => (event.key === undefined ? [] : [{ event, key: event.key }]));
  return requests.sort((a, b) => a.event.repositoryId - b.event.repositoryId || compare(a.key.key, b.key.key));
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

const MAX_TRIES = 3;

interface KeyRequest {
  readonly event: NewEvent;
  readonly key: EventKey;
}

function reserveStatement({ event, key }: KeyRequest): BoundStatement {
  const parameters = [event.repositoryId, key.key, key.fingerprint, key.answer, key.expiresAtMs, event.nowMs];
  return { statement: reserveKeySql, parameters };
}

function earlierEventStatement({ event, key }: KeyRequest): BoundStatement {
  return { statement: earlierEventSql, parameters: [event.repositoryId, key.key] };
}

function refuseKeyInUse(): Failure {
  return new Failure('unavailable', 'Cannot publish the event: its idempotency key is in use', {
    retryAfterSeconds: 1,
  });
}
