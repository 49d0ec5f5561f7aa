/** Events with their idempotency keys and deliveries: as many as have come together, in one transaction. */
import {
  conditionalProcedure,
  type Procedure,
  type Row,
  type SqlValue,
  statement,
  type Transaction,
} from '../../database/store.ts';
import { exactSteps, renderInsertRows, wideStatement } from '../../database/value-rows.ts';
import { Failure } from '../../errors.ts';
import { enqueueSteps, type NewDelivery } from '../delivery/queue/delivery-store.ts';

const insertEvents = wideStatement<Row>(
  'insert-events',
  (width) =>
    `INSERT INTO events (id, repository_id, kind, source, content, created_at_ms) VALUES ${renderInsertRows(6, width)}`,
);
// One statement decides whose the key is: a live one of another event stays, an expired one is taken over. One
// that another transaction is just claiming is waited for.
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
 * by repository and key, then endpoints by hook.
 */
export const commitEvents: Procedure<readonly NewEvent[], (KeyHolder | undefined)[]> = conditionalProcedure(
  import.meta.url,
  'commitEvents',
  async (transaction, events) => {
    const holders = await claimKeys(transaction, events);
    const stored = events.filter((event) => !holders.has(event));
    const rows = stored.map((event) => [
      event.id,
      event.repositoryId,
      event.kind,
      event.source,
      event.content,
      event.nowMs,
    ]);
    const deliveries = stored.flatMap((event) => event.deliveries);
    for (const step of [...exactSteps(insertEvents, rows), ...enqueueSteps(deliveries)])
      await transaction.run(step.statement, step.parameters);
    return events.map((event) => holders.get(event));
  },
);

async function claimKeys(
  transaction: Transaction,
  events: readonly NewEvent[],
): Promise<ReadonlyMap<NewEvent, KeyHolder>> {
  const holders = new Map<NewEvent, KeyHolder>();
  const claims = events.flatMap((event) => (event.key === undefined ? [] : [{ event, key: event.key }]));
  // Stable: of two with one key the first to arrive gets it.
  claims.sort((a, b) => a.event.repositoryId - b.event.repositoryId || compare(a.key.key, b.key.key));
  for (const { event, key } of claims) {
    const holder = await claim(transaction, event, key);
    if (holder !== undefined) holders.set(event, holder);
  }
  return holders;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

const MAX_CLAIMS = 3;

async function claim(transaction: Transaction, event: NewEvent, key: EventKey): Promise<KeyHolder | undefined> {
  const place: SqlValue[] = [event.repositoryId, key.key];
  for (let tries = 0; tries < MAX_CLAIMS; tries += 1) {
    const claimed = await transaction.run(claimKey, [
      ...place,
      key.fingerprint,
      key.answer,
      key.expiresAtMs,
      event.nowMs,
    ]);
    if (claimed.length > 0) return undefined;
    const [holder] = await transaction.run(keyHolder, place);
    if (holder !== undefined) return holder;
    // It expired and was swept between the two statements: it is free now.
  }
  throw new Failure('unavailable', 'Cannot announce the event: its idempotency key is in use', {
    retryAfterSeconds: 1,
  });
}
