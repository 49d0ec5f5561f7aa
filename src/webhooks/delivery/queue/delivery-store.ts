/**
 * Creates, holds, moves and cancels deliveries in the transaction of the caller. A transaction locks rows of `endpoint_queue` in
 * ascending order of hook ids and before those of `hooks`, so that no two deadlock.
 *
 * Names of tables and statements are older than the terms of the code: `endpoint` means hook queue; `parked` paused, held or canceled;
 * `settle` store results; `rest` sleep; `claim` and `take` reserve; `give back` end a reservation; `doubt` reopen unverified
 * deliveries. Each hook has a queue: a row in `endpoint_queue` with the time when something is due next, and its deliveries in order
 * of (hook, lane, due time). A pause of the breaker changes that row alone, so a dead receiver with a million deliveries costs one
 * row update for each pause; the backoff of a retry is in the row of its delivery.
 * docs/how-it-works/delivery.md explains the columns.
 */
import { hash } from 'node:crypto';
import { type BoundStatement, type Row, type Statement, type Store, statement } from '../../../database/store.ts';
import { bindRowsExactly, multiRowInsert } from '../../../database/value-rows.ts';
import type { EventKind } from '../../events/event-kind.ts';
import type { ProfileName } from '../../hooks/hook.ts';
import { PROBE_REQUESTED } from '../schedule/pause-reason.ts';
import { LANE_NUMBERS } from './delivery-state.ts';

export const SHARD_COUNT = 256;

// CASE and COALESCE keep PostgreSQL from preferring these predicates to the lookup by id. Without fresh statistics, as after
// every burst, it expects a plain `state = 'pending'` or `… IS NULL` to hold for very few rows, and scans all of them.
/** Condition: a delivery that is selected by its ids is still to be sent. */
export const isStillPending = (deliveries: string): string =>
  `CASE ${deliveries}.state WHEN 'pending' THEN 1 ELSE 0 END > 0`;
/** Condition: a hook queue that is selected by its id is neither held nor canceled. */
export const isNeitherHeldNorCanceled = 'COALESCE(endpoint_queue.held_since_ms, endpoint_queue.canceled_at_ms, 0) < 1';

/** The reason in the row after a person has ended the pause. It tells the worker to end the pause of the origin too. */
export const REASON_OF_ENDED_PAUSE = `CASE WHEN pause_reason IN ('no_connection', '${PROBE_REQUESTED}') THEN '${PROBE_REQUESTED}'
       WHEN parked = 0 THEN pause_reason END`;

/** The generation of a hook's queue; 0 while the queue has no row. */
export const generationOf = (hookId: string): string =>
  `COALESCE((SELECT q.generation FROM endpoint_queue q WHERE q.hook_id = ${hookId}), 0) AS generation`;

/** Later than any time: the hook queue has nothing to do until it is woken. */
export const NEVER_MS = 8_640_000_000_000_000;

export interface NewDelivery {
  /** The id comes from `store.makeIds()`. */
  readonly id: number;
  readonly hookId: number;
  readonly eventId: number;
  readonly uuid: string;
  /** Sent byte for byte at every attempt. */
  readonly body: Uint8Array | StoredBody;
  readonly eventKind: EventKind;
  /** The subject of the event, by which the log can be searched. */
  readonly subject?: string;
  /** The profile in which the body is rendered; unless given, that of the hook at each attempt. */
  readonly profile?: ProfileName;
  /** `new URL(hook.url).origin` */
  readonly origin: string;
  /** The owner of the repository, for whose fair share the delivery counts. */
  readonly ownerId: string;
  readonly nowMs: number;
  /** Now unless given. The caller of a test sends it itself, and sets a time after its own deadline for the workers. */
  readonly dueAtMs?: number;
}

/** A body that was stored before its delivery: those of a large event are stored in parts. */
export interface StoredBody {
  readonly storedBytes: number;
}

const insertContentsSql = multiRowInsert('delivery-insert-contents', 'delivery_contents', {
  delivery_id: 'int',
  hook_id: 'int',
  event_id: 'int',
  uuid: 'text',
  body: 'blob',
  subject: 'text',
  profile: 'text',
});

const insertDeliveriesSql = multiRowInsert('delivery-insert', 'deliveries', {
  hook_id: 'int',
  id: 'int',
  event_kind: 'text',
  state: 'text',
  lane: 'int',
  attempts: 'int',
  schedule_from: 'int',
  due_at_ms: 'int',
  status: 'int',
  body_bytes: 'int',
  created_at_ms: 'int',
});

// The row lock orders the enqueues of one hook queue, and a worker that puts it to sleep compares the version. The version also rises
// for a hook queue that is due already: otherwise a worker that does not see the new delivery yet might put it to sleep.
const wakeOnEnqueueSql = multiRowInsert(
  'endpoint-wake-on-enqueue',
  'endpoint_queue',
  {
    hook_id: 'int',
    owner_id: 'text',
    origin: 'text',
    shard: 'int',
    next_at_ms: 'int',
    version: 'int',
    parked: 'int',
    fails: 'int',
  },
  `ON CONFLICT (hook_id) DO UPDATE SET
     version = endpoint_queue.version + 1,
     next_at_ms = CASE WHEN endpoint_queue.parked = 1 OR endpoint_queue.next_at_ms < excluded.next_at_ms
                       THEN endpoint_queue.next_at_ms ELSE excluded.next_at_ms END
   RETURNING hook_id, version`,
);

/** The version that an enqueue gave to the row of each hook queue, by the id of its hook. */
export type EnqueueVersions = ReadonlyMap<number, number>;

/** Reads the versions from the answers to statements that contain `enqueueStatements()`; no other of these statements returns rows. */
export function readEnqueueVersions(answers: readonly (readonly Row[])[]): EnqueueVersions {
  const rows = answers.flat() as unknown as { readonly hook_id: number; readonly version: number }[];
  return new Map(rows.map(({ hook_id, version }) => [hook_id, version]));
}

/**
 * Creates deliveries. Must be at the end of the transaction that stores their events: from here to the commit, every other enqueue to
 * these hook queues waits for their rows. Call `wakeDeliveries()` after the commit.
 */
export function enqueueStatements(deliveries: readonly NewDelivery[]): BoundStatement[] {
  return [
    ...contentStatements(deliveries),
    ...bindRowsExactly(insertDeliveriesSql, deliveries.map(toDeliveryRow)),
    ...bindRowsExactly(wakeOnEnqueueSql, listWakes(deliveries)),
  ];
}

/** Statements that store the bodies of deliveries, which are not visible until their deliveries are stored. */
export function contentStatements(deliveries: readonly NewDelivery[]): BoundStatement[] {
  const rows = deliveries.flatMap(({ id, hookId, eventId, uuid, body, subject = null, profile = null }) =>
    'storedBytes' in body
      ? []
      : [{ delivery_id: id, hook_id: hookId, event_id: eventId, uuid, body, subject, profile }],
  );
  return bindRowsExactly(insertContentsSql, rows);
}

function toDeliveryRow({ id, hookId, eventKind, body, nowMs, dueAtMs = nowMs }: NewDelivery) {
  return {
    hook_id: hookId,
    id,
    event_kind: eventKind,
    state: 'pending',
    lane: LANE_NUMBERS.first,
    attempts: 0,
    schedule_from: 0,
    due_at_ms: dueAtMs,
    status: 0,
    body_bytes: 'storedBytes' in body ? body.storedBytes : body.byteLength,
    created_at_ms: nowMs,
  };
}

/** One row for each hook, due with the first of its deliveries. */
function listWakes(deliveries: readonly NewDelivery[]) {
  const byHook = Map.groupBy(deliveries, (delivery) => delivery.hookId);
  const ascending = [...byHook.values()].sort(([one], [other]) => one!.hookId - other!.hookId);
  return ascending.map((some) => {
    const { hookId, ownerId, origin } = some[0]!;
    const dueAtMs = Math.min(...some.map((delivery) => delivery.dueAtMs ?? delivery.nowMs));
    return {
      hook_id: hookId,
      owner_id: ownerId,
      origin,
      shard: shardOf(origin),
      next_at_ms: dueAtMs,
      version: 1,
      parked: 0,
      fails: 0,
    };
  });
}

/** Caches shards: every delivery needs the shard of its origin, and the digest takes several times as long as this look-up. */
const shardByOrigin = new Map<string, number>();
const MAX_REMEMBERED_ORIGINS = 10_000;

/** All hook queues of one origin belong to one worker, so that it can keep the origin's limits. */
export function shardOf(origin: string): number {
  const known = shardByOrigin.get(origin);
  if (known !== undefined) return known;
  const shard = hash('sha256', origin, 'buffer').readUInt8(0) % SHARD_COUNT;
  if (shardByOrigin.size >= MAX_REMEMBERED_ORIGINS) shardByOrigin.clear();
  shardByOrigin.set(origin, shard);
  return shard;
}

const holdHookQueueSql: Statement = statement(
  'endpoint-hold',
  `UPDATE endpoint_queue SET held_since_ms = $2, parked = 1, next_at_ms = $3, version = version + 1
   WHERE hook_id = $1 AND held_since_ms IS NULL AND canceled_at_ms IS NULL`,
);

/** Holds all pending deliveries of a disabled hook by one row update. */
export function holdHookQueueStatement(hookId: number, nowMs: number): BoundStatement {
  return { statement: holdHookQueueSql, parameters: [hookId, nowMs, NEVER_MS] };
}

const holdSeenHookQueueSql: Statement = statement(
  'endpoint-hold-seen',
  `UPDATE endpoint_queue SET held_since_ms = $2, parked = 1, next_at_ms = $3, version = version + 1
   WHERE hook_id = $1 AND version = $4 AND held_since_ms IS NULL AND canceled_at_ms IS NULL`,
);

/**
 * Holds the deliveries of a hook that was read as disabled. If the hook was enabled after that read, the version has risen, and the
 * hook queue is not held, stays due, and is read again.
 */
export function holdSeenHookQueueStatement(hookId: number, version: number, nowMs: number): BoundStatement {
  return { statement: holdSeenHookQueueSql, parameters: [hookId, nowMs, NEVER_MS, version] };
}

const releaseHookQueueSql: Statement = statement(
  'endpoint-release',
  `UPDATE endpoint_queue SET held_since_ms = NULL, parked = 0, fails = 0, failing_since_ms = NULL,
     openings = 0, paused_since_ms = NULL, next_at_ms = $2, version = version + 1,
     pause_reason = ${REASON_OF_ENDED_PAUSE},
     generation = generation + 1
   WHERE hook_id = $1 AND canceled_at_ms IS NULL`,
);

/** Releases a hook that was enabled or got another URL: held deliveries become pending, and failures are reset. */
export function releaseHookQueueStatement(hookId: number, nowMs: number): BoundStatement {
  return { statement: releaseHookQueueSql, parameters: [hookId, nowMs] };
}

const releaseOffHookQueueSql: Statement = statement(
  'endpoint-release-off',
  `${releaseHookQueueSql.text} AND (held_since_ms IS NOT NULL
     OR EXISTS (SELECT 1 FROM hooks WHERE hooks.id = $1 AND hooks.disabled_at_ms IS NOT NULL))`,
);
const raiseVersionSql: Statement = statement(
  'endpoint-raise-version',
  'UPDATE endpoint_queue SET version = version + 1 WHERE hook_id = $1',
);

/**
 * Releases a hook that was read as enabled only if it was disabled since; otherwise its failures and its pause stay. The version rises
 * in any case, so that a worker that saw the hook as disabled in between does not hold it.
 */
export function releaseOffHookQueueStatements(hookId: number, nowMs: number): BoundStatement[] {
  return [
    { statement: releaseOffHookQueueSql, parameters: [hookId, nowMs] },
    { statement: raiseVersionSql, parameters: [hookId] },
  ];
}

const moveHookQueueSql: Statement = statement(
  'endpoint-move',
  `UPDATE endpoint_queue SET origin = $2, shard = $3, version = version + 1, generation = generation + 1 WHERE hook_id = $1`,
);

/** Moves a hook whose URL has another origin: the worker that owns the shard of the new origin sends its deliveries. */
export function moveHookQueueStatement(hookId: number, origin: string): BoundStatement {
  return { statement: moveHookQueueSql, parameters: [hookId, origin, shardOf(origin)] };
}

const cancelHookQueueSql: Statement = statement(
  'endpoint-cancel',
  `UPDATE endpoint_queue SET canceled_at_ms = $2, parked = 1, next_at_ms = $3, version = version + 1 WHERE hook_id = $1`,
);

/** Cancels a deleted hook: nothing more is sent, and a sweep cancels its pending deliveries in batches. */
export function cancelHookQueueStatement(hookId: number, nowMs: number): BoundStatement {
  return { statement: cancelHookQueueSql, parameters: [hookId, nowMs, NEVER_MS] };
}

interface CountRow extends Row {
  readonly count: number;
}

const PENDING_COUNT_LIMIT = 100_000;

const countPendingSql: Statement<CountRow> = statement(
  'delivery-count-pending',
  `SELECT COUNT(*) AS count FROM (SELECT 1 FROM deliveries WHERE state = 'pending' LIMIT $1) AS waiting`,
);

/** How many deliveries are pending; counted to 100,000 only, since metrics read it often. */
export async function countPendingDeliveries(store: Store): Promise<number> {
  const [row] = await store.read(countPendingSql, [PENDING_COUNT_LIMIT]);
  return row?.count ?? 0;
}
