/**
 * Reads what is due for a worker: hook queues of its shards, their first deliveries and contents. In the names of tables and
 * statements, `endpoint` means a hook queue. Its column `parked` is 1 while it is paused, held or canceled.
 */
import { type BoundStatement, type Statement, type Store, statement } from '../../../database/store.ts';
import { bindRows, multiRowStatement } from '../../../database/value-rows.ts';
import type { EventKind } from '../../events/event-kind.ts';
import type { EncryptedSecrets } from '../../hooks/hook.ts';
import { MAX_SMALL_BODY_BYTES } from '../schedule/concurrency-limits.ts';
import type { ORIGIN_RECONNECTED, PauseReason, PROBE_REQUESTED } from '../schedule/pause-reason.ts';
import type { Lane } from '../schedule/turn-tree.ts';
import { LANE_NUMBERS } from './delivery-state.ts';
import { generationOf, isStillPending } from './delivery-store.ts';

export interface DueHookQueue {
  readonly hook_id: number;
  readonly owner_id: string;
  readonly origin: string;
  readonly shard: number;
  /** The epoch of the shard's lease, which fences what the worker stores of this row. */
  readonly epoch: number;
  readonly next_at_ms: number;
  readonly version: number;
  /** Rises when the hook queue is released or moved, or recovers; outcomes of earlier attempts then do not change its health. */
  readonly generation: number;
  readonly parked: number;
  readonly fails: number;
  readonly failing_since_ms: number | null;
  readonly openings: number;
  readonly paused_since_ms: number | null;
  readonly pause_reason: PauseReason | typeof ORIGIN_RECONNECTED | typeof PROBE_REQUESTED | null;
}

const dueHookQueuesSql: Statement<DueHookQueue> = statement(
  'endpoint-due',
  `SELECT q.hook_id, q.owner_id, q.origin, q.shard, s.epoch, q.next_at_ms, q.version, q.generation, q.parked,
     q.fails, q.failing_since_ms, q.openings, q.paused_since_ms, q.pause_reason
   FROM endpoint_queue q JOIN delivery_shards s ON s.shard = q.shard
   WHERE q.next_at_ms <= $1 AND (q.next_at_ms, q.hook_id) > ($2, $3) AND s.owner = $4
   ORDER BY q.next_at_ms, q.hook_id LIMIT $5`,
);

export interface DuePage {
  readonly workerId: string;
  readonly nowMs: number;
  readonly afterMs: number;
  readonly afterHookId: number;
  readonly limit: number;
}

export async function readDueHookQueues(store: Store, page: DuePage): Promise<DueHookQueue[]> {
  return await store.read(dueHookQueuesSql, [page.nowMs, page.afterMs, page.afterHookId, page.workerId, page.limit]);
}

export interface WaitingRow {
  readonly hook_id: number;
  readonly id: number;
  readonly lane: number;
  readonly body_bytes: number;
}

export interface WaitingRequest {
  readonly hookId: number;
  /** How many deliveries of each lane; 0 of a lane that is not needed. */
  readonly limits: Readonly<Record<Lane, number>>;
}

// At most 4 branches: PostgreSQL replans the first executions on each connection, and planning 64 branches takes 60 ms.
const BRANCH_WIDTHS = [4, 2, 1];

// One branch for each hook queue and lane, which reads only the first entries of its range of the index.
const waitingSql = multiRowStatement(
  'delivery-waiting',
  { hookId: 'int', first: 'int', retry: 'int' },
  ({ each, more }) => {
    const branch = (hookId: string, lane: number, limit: string, at: number) =>
      `SELECT * FROM (SELECT hook_id, id, lane, body_bytes FROM deliveries
      WHERE state = 'pending' AND hook_id = ${hookId} AND lane = ${lane} AND due_at_ms <= ${more(1)}
      ORDER BY due_at_ms, id LIMIT ${limit}) AS w${at}_${lane}`;
    const branches = each(
      ({ hookId, first, retry }, at) =>
        `${branch(hookId, LANE_NUMBERS.first, first, at)} UNION ALL ${branch(hookId, LANE_NUMBERS.retry, retry, at)}`,
    );
    return branches.join(' UNION ALL ');
  },
  BRANCH_WIDTHS,
);

/** The first due deliveries of each hook queue, of first attempts and of retries separately. */
export async function readWaiting(
  store: Store,
  requests: readonly WaitingRequest[],
  nowMs: number,
): Promise<WaitingRow[]> {
  const rows = requests.map(({ hookId, limits: { first, retry } }) => ({ hookId, first, retry }));
  const filler = { hookId: 0, first: 0, retry: 0 };
  return await readRows(store, bindRows(waitingSql, rows, { more: [nowMs], filler }));
}

/** Limit of a read with contents, for each lane. If a read finds this many, there may be more. */
export const SMALL_READ = 8;

const WAITING_COLUMNS = 'id, hook_id, lane, body_bytes, attempts, schedule_from, due_at_ms, created_at_ms, event_kind';
/** The profile in which the body was rendered, which headers use too; the hook's present one if none is stored. */
const profileOf = (ofBody: string) => `COALESCE(${ofBody}, h.profile) AS profile`;
/**
 * Looks the event up only for a delivery without an attempt in its schedule that was not due at its creation, as new deliveries are. A
 * test is such a delivery until its only attempt is stored; a late result counts outside the schedule (`attempt-result-store.ts`).
 */
const isTest = (eventId: string) =>
  `CASE WHEN d.attempts = d.schedule_from AND d.due_at_ms <> d.created_at_ms
     THEN (SELECT COUNT(*) FROM events e WHERE e.id = ${eventId} AND e.source = 'test') ELSE 0 END AS is_test`;
const HOOK_COLUMNS = 'h.url, h.encryption_type, h.secret, h.previous_secret, h.previous_until_ms, h.disabled_at_ms';

// Reads contents too, so that a few waiting deliveries take one read instead of two; large bodies are read before their attempt.
// Everything is looked up by an id: PostgreSQL might scan the whole table for a join. LIMIT is a literal: for a parameter the planner
// assumes 10 % of the rows.
const waitingContentsSql = multiRowStatement(
  'delivery-waiting-contents',
  { hookId: 'int' },
  ({ each, more }) => {
    const contentOf = (column: string) => `(SELECT c.${column} FROM delivery_contents c WHERE c.delivery_id = d.id)`;
    const branch = (hookId: string, lane: number) =>
      `SELECT d.*, ${contentOf('uuid')} AS uuid,
         CASE WHEN d.body_bytes <= ${MAX_SMALL_BODY_BYTES} THEN ${contentOf('body')} END AS body,
         ${profileOf(contentOf('profile'))}, ${isTest(contentOf('event_id'))}, ${HOOK_COLUMNS}, ${generationOf(hookId)}
       FROM (SELECT ${WAITING_COLUMNS} FROM deliveries
             WHERE state = 'pending' AND hook_id = ${hookId} AND lane = ${lane} AND due_at_ms <= ${more(1)}
             ORDER BY due_at_ms, id LIMIT ${SMALL_READ}) AS d
       LEFT JOIN hooks h ON h.id = ${hookId}`;
    const branches = each(({ hookId }) =>
      Object.values(LANE_NUMBERS)
        .map((lane) => branch(hookId, lane))
        .join(' UNION ALL '),
    );
    return branches.join(' UNION ALL ');
  },
  BRANCH_WIDTHS,
);

/** A waiting delivery with the data of its attempt; `uuid` or `body` is null if it has to be read separately. */
type WaitingContentRow = WaitingRow & Omit<ContentRow, 'uuid' | 'body'> & Nullable<Pick<ContentRow, 'uuid' | 'body'>>;
type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

/** The first `SMALL_READ` due deliveries of each hook queue, of first attempts and of retries separately. */
export async function readSmallWaiting(
  store: Store,
  hookIds: readonly number[],
  nowMs: number,
): Promise<{ readonly rows: readonly WaitingRow[]; readonly contents: readonly ContentRow[] }> {
  const requests = hookIds.map((hookId) => ({ hookId }));
  const statements = bindRows(waitingContentsSql, requests, { more: [nowMs], filler: { hookId: 0 } });
  const rows: WaitingContentRow[] = await readRows(store, statements);
  rows.sort((one, other) => one.due_at_ms - other.due_at_ms || one.id - other.id);
  return { rows, contents: rows.filter(hasContent) };
}

function hasContent(row: WaitingContentRow): row is WaitingRow & ContentRow {
  return row.uuid !== null && row.body !== null;
}

/** Everything that one attempt needs. `url` is null when the hook was deleted. */
export interface ContentRow extends EncryptedSecrets {
  readonly id: number;
  readonly hook_id: number;
  readonly attempts: number;
  readonly schedule_from: number;
  readonly due_at_ms: number;
  readonly created_at_ms: number;
  readonly event_kind: EventKind;
  readonly uuid: string;
  readonly body: Uint8Array;
  readonly url: string | null;
  readonly encryption_type: number;
  readonly profile: string;
  readonly disabled_at_ms: number | null;
  /** 1 for a test before its only attempt, also before the attempt of its redelivery. */
  readonly is_test: number;
  /** The generation of the hook queue when the hook was read. */
  readonly generation: number;
}

const CONTENT_COLUMNS = `d.id, d.hook_id, d.attempts, d.schedule_from, d.due_at_ms, d.created_at_ms, d.event_kind, c.uuid, c.body,
  ${profileOf('c.profile')}, ${isTest('c.event_id')}, ${HOOK_COLUMNS}, ${generationOf('d.hook_id')}`;

// One branch for each delivery, so that each is looked up by its ids. For a join with a list of values, PostgreSQL scans all
// deliveries while its statistics are those of a nearly empty table.
const contentsSql = multiRowStatement(
  'delivery-contents-by-ids',
  { hookId: 'int', id: 'int' },
  ({ each }) => {
    const branches = each(
      ({ hookId, id }) => `SELECT ${CONTENT_COLUMNS} FROM deliveries d
       JOIN delivery_contents c ON c.delivery_id = d.id LEFT JOIN hooks h ON h.id = d.hook_id
       WHERE d.hook_id = ${hookId} AND d.id = ${id} AND ${isStillPending('d')}`,
    );
    return branches.join(' UNION ALL ');
  },
  BRANCH_WIDTHS,
);

/** Contents of the deliveries that are still pending. */
export async function readContents(
  store: Store,
  deliveries: readonly { readonly hookId: number; readonly id: number }[],
): Promise<ContentRow[]> {
  return await readRows(store, bindRows(contentsSql, deliveries, { filler: { hookId: 0, id: 0 } }));
}

async function readRows<R extends object>(store: Store, statements: readonly BoundStatement[]): Promise<R[]> {
  return (await store.readAll(statements)).flat() as unknown as R[];
}
