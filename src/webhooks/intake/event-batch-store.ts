/** Events with their idempotency keys and deliveries: as many as have come together, in one transaction. */
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
import { enqueueStatements, type NewDelivery } from '../delivery/queue/delivery-store.ts';

const insertEventsSql = multiRowInsert('insert-events', 'events', {
  id: 'int',
  repository_id: 'int',
  kind: 'text',
  source: 'text',
  content: 'text',
  created_at_ms: 'int',
});
// One statement decides whose the key is: a live one of another event stays, an expired one is taken over. One
// that another transaction is just claiming is waited for.
const claimKeySql = statement<{ answer: string }>(
  'claim-event-key',
  `INSERT INTO event_keys (repository_id, idempotency_key, fingerprint, answer, expires_at_ms)
   VALUES ($1, $2, $3, $4, $5)
   ON CONFLICT (repository_id, idempotency_key) DO UPDATE
     SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at_ms = excluded.expires_at_ms
     WHERE event_keys.expires_at_ms <= $6
   RETURNING answer`,
);
const keyHolderSql = statement<KeyHolder>(
  'event-key-holder',
  'SELECT fingerprint, answer FROM event_keys WHERE repository_id = $1 AND idempotency_key = $2',
);

const liveKeyHolderSql = statement<KeyHolder>(
  'live-event-key-holder',
  `SELECT fingerprint, answer FROM event_keys
   WHERE repository_id = $1 AND idempotency_key = $2 AND expires_at_ms > $3`,
);

/** Who holds the key now. Only the commit decides; this saves the work for an event that is repeated. */
export async function findKeyHolder(
  store: Store,
  repositoryId: number,
  { key, nowMs }: { readonly key: string; readonly nowMs: number },
): Promise<KeyHolder | undefined> {
  return (await store.read(liveKeyHolderSql, [repositoryId, key, nowMs]))[0];
}

export interface KeyHolder {
  readonly fingerprint: string;
  readonly answer: string;
}

export interface EventKey {
  readonly key: string;
  /** Distinguishes another event under the same key from a repetition. */
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

/**
 * For each event undefined, or who holds its key: then nothing of it was stored. Locks are taken in one order by all: keys
 * by repository and key, then hook queues by hook.
 */
export const commitEvents: Procedure<readonly NewEvent[], (KeyHolder | undefined)[]> = conditionalProcedure(
  import.meta.url,
  'commitEvents',
  async (transaction, events) => {
    const holders = await claimKeys(transaction, events);
    await transaction.runAll(eventStatements(events.filter((event) => !holders.has(event))));
    return events.map((event) => holders.get(event));
  },
);

/** The same for events of which none has a key: no statement depends on the answer of another. */
export async function insertEvents(store: Store, events: readonly NewEvent[]): Promise<void> {
  await store.writeAll(eventStatements(events), { inOneTrip: true });
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

async function claimKeys(
  transaction: Transaction,
  events: readonly NewEvent[],
): Promise<ReadonlyMap<NewEvent, KeyHolder>> {
  const holders = new Map<NewEvent, KeyHolder>();
  const claims = events.flatMap((event) => (event.key === undefined ? [] : [{ event, key: event.key }]));
  // Stable: of two with one key the first to arrive gets it.
  claims.sort((a, b) => a.event.repositoryId - b.event.repositoryId || compare(a.key.key, b.key.key));
  let open: readonly Claim[] = claims;
  for (let tries = 0; tries < MAX_CLAIMS && open.length > 0; tries += 1) {
    const claimed = await transaction.runAll(open.map(claimStatement));
    const taken = open.filter((_, index) => claimed[index]!.length === 0);
    const found = (await transaction.runAll(taken.map(holderStatement))) as unknown as KeyHolder[][];
    for (const [index, [holder]] of found.entries()) if (holder !== undefined) holders.set(taken[index]!.event, holder);
    // The others expired and were swept between the two statements: their keys are free now.
    open = taken.filter(({ event }) => !holders.has(event));
  }
  if (open.length > 0) throw refuseKeyInUse();
  return holders;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

const MAX_CLAIMS = 3;

interface Claim {
  readonly event: NewEvent;
  readonly key: EventKey;
}

function claimStatement({ event, key }: Claim): BoundStatement {
  const parameters = [event.repositoryId, key.key, key.fingerprint, key.answer, key.expiresAtMs, event.nowMs];
  return { statement: claimKeySql, parameters };
}

function holderStatement({ event, key }: Claim): BoundStatement {
  return { statement: keyHolderSql, parameters: [event.repositoryId, key.key] };
}

function refuseKeyInUse(): Failure {
  return new Failure('unavailable', 'Cannot announce the event: its idempotency key is in use', {
    retryAfterSeconds: 1,
  });
}
