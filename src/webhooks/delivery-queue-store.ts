/**
 * What a worker reads and writes, always for many at once: the endpoints that are due in its shards, the first few
 * deliveries of each, what they carry, and one batch of results. Results are fenced twice: the shard must still be the
 * worker's (owner and epoch), and the delivery must stand where the worker found it (`attempts`).
 */
import { type Row, type Statement, type Step, type Store, statement } from '../database/store.ts';
import { renderInsertRows, renderValueRows, wideStatement, wideSteps } from '../database/value-rows.ts';
import { NEVER_MS } from './delivery-store.ts';
import type { EventKind } from './event-kind.ts';
import type { SealedSecrets } from './hook.ts';

export interface DueEndpoint {
  readonly hook_id: number;
  readonly owner_id: string;
  readonly origin: string;
  readonly shard: number;
  readonly next_at_ms: number;
  readonly version: number;
  readonly parked: number;
  readonly fails: number;
  readonly failing_since_ms: number | null;
}

const dueEndpoints: Statement<DueEndpoint> = statement(
  'endpoint_due',
  `SELECT q.hook_id, q.owner_id, q.origin, q.shard, q.next_at_ms, q.version, q.parked, q.fails, q.failing_since_ms
   FROM endpoint_queue q JOIN delivery_shards s ON s.shard = q.shard
   WHERE q.next_at_ms <= $1 AND (q.next_at_ms, q.hook_id) > ($2, $3) AND s.owner = $4
   ORDER BY q.next_at_ms, q.hook_id LIMIT $5`,
);

export interface DuePage {
  readonly owner: string;
  readonly nowMs: number;
  readonly afterMs: number;
  readonly afterHookId: number;
  readonly limit: number;
}

export async function readDueEndpoints(store: Store, page: DuePage): Promise<DueEndpoint[]> {
  return await store.read(dueEndpoints, [page.nowMs, page.afterMs, page.afterHookId, page.owner, page.limit]);
}

export interface WaitingRow {
  readonly hook_id: number;
  readonly id: number;
  readonly lane: number;
  readonly body_bytes: number;
}

export interface WaitingRequest {
  readonly hookId: number;
  readonly limit: number;
}

// Few: PostgreSQL plans the first runs of a statement on each connection anew, which takes 60 ms for 64 endpoints.
const WAITING_WIDTHS = [4, 1];

// A branch for each endpoint and lane, so that each is the head of one index range however long that is.
const waiting = wideStatement<WaitingRow>(
  'delivery_waiting',
  (width) => {
    const now = `$${2 * width + 1}`;
    const branch = (at: number, lane: number) =>
      `SELECT * FROM (SELECT hook_id, id, lane, body_bytes FROM deliveries
      WHERE state = 'pending' AND hook_id = $${2 * at + 1} AND lane = ${lane} AND due_at_ms <= ${now}
      ORDER BY due_at_ms, id LIMIT $${2 * at + 2}) AS w${at}_${lane}`;
    return Array.from({ length: width }, (_, at) => [branch(at, 0), branch(at, 1)])
      .flat()
      .join(' UNION ALL ');
  },
  WAITING_WIDTHS,
);

/** The first deliveries of each endpoint that are due, first attempts and retries apart, `limit` of each. */
export async function readWaiting(
  store: Store,
  requests: readonly WaitingRequest[],
  nowMs: number,
): Promise<WaitingRow[]> {
  const rows = requests.map(({ hookId, limit }) => [hookId, limit]);
  return await readSteps(store, wideSteps(waiting, rows, [nowMs]));
}

/** All that one attempt needs. `url` is null when the hook is gone. */
export interface ContentRow extends SealedSecrets {
  readonly id: number;
  readonly hook_id: number;
  readonly attempts: number;
  readonly schedule_from: number;
  readonly created_at_ms: number;
  readonly event_kind: EventKind;
  readonly uuid: string;
  readonly body: Uint8Array;
  readonly url: string | null;
  readonly encryption_type: number;
  readonly profile: string;
  readonly disabled_at_ms: number | null;
}

const CONTENT_COLUMNS = `d.id, d.hook_id, d.attempts, d.schedule_from, d.created_at_ms, d.event_kind, c.uuid, c.body,
  h.url, h.encryption_type, h.profile, h.secret, h.previous_secret, h.previous_until_ms, h.disabled_at_ms`;

const contents = wideStatement<ContentRow>(
  'delivery_contents_read',
  (width) =>
    `SELECT ${CONTENT_COLUMNS} FROM (VALUES ${renderValueRows(['int', 'int'], width)}) AS v
     CROSS JOIN deliveries d JOIN delivery_contents c ON c.delivery_id = d.id LEFT JOIN hooks h ON h.id = d.hook_id
     WHERE d.hook_id = v.column1 AND d.id = v.column2 AND d.state = 'pending'`,
);

/** What is to be sent, as far as it is still pending. */
export async function readContents(
  store: Store,
  deliveries: readonly { readonly hookId: number; readonly id: number }[],
): Promise<ContentRow[]> {
  const rows = deliveries.map(({ hookId, id }) => [hookId, id]);
  return await readSteps(store, wideSteps(contents, rows));
}

async function readSteps<R extends object>(store: Store, steps: readonly Step[]): Promise<R[]> {
  const pages = await Promise.all(steps.map((step) => store.read(step.statement, step.parameters)));
  return pages.flat() as unknown as R[];
}

// A test's attempt takes its delivery by a due time beyond its own deadline; a worker goes on with it after that. The lane
// tells that it was taken.
const claimDelivery: Statement<{ id: number; hook_id: number }> = statement(
  'delivery_claim',
  `UPDATE deliveries SET due_at_ms = $2, lane = 1 WHERE state = 'pending' AND attempts = 0 AND lane = 0 AND id = $1
     AND hook_id = (SELECT c.hook_id FROM delivery_contents c WHERE c.delivery_id = $1)
   RETURNING id, hook_id`,
);

export async function claimForTest(store: Store, id: number, untilMs: number): Promise<number | undefined> {
  const [row] = await store.write(claimDelivery, [id, untilMs]);
  return row?.hook_id;
}

/** What one attempt was and made of its delivery. */
export interface Settlement {
  readonly deliveryId: number;
  readonly hookId: number;
  /** What the row said before; the settlement counts only if it still does. */
  readonly attempts: number;
  readonly shard: number;
  /** The worker's epoch of the shard; −1 for an attempt outside of any shard, like a test's. */
  readonly epoch: number;
  readonly state: string;
  readonly lane: number;
  readonly dueAtMs: number;
  readonly attempt: AttemptRecord;
}

export interface AttemptRecord {
  readonly id: number;
  readonly startedAtMs: number;
  readonly outcome: string;
  readonly status: number;
  readonly reason: string | null;
  readonly remoteAddress: string | null;
  /** JSON: request and response headers, timings. */
  readonly detail: string;
  readonly responseBody: Uint8Array | null;
}

const SETTLE_TYPES = ['int', 'int', 'int', 'text', 'int', 'int', 'int', 'int', 'int', 'int'] as const;

const settle = wideStatement<{ id: number }>(
  'delivery_settle',
  (width) =>
    `UPDATE deliveries SET state = v.column4, lane = v.column5, due_at_ms = v.column6, status = v.column7,
       attempted_at_ms = v.column8, attempts = deliveries.attempts + 1
     FROM (VALUES ${renderValueRows(SETTLE_TYPES, width)}) AS v
     WHERE deliveries.hook_id = v.column1 AND deliveries.id = v.column2 AND deliveries.attempts = v.column3
       AND deliveries.state = 'pending'
       AND (v.column10 = -1 OR EXISTS (SELECT 1 FROM delivery_shards s
            WHERE s.shard = v.column9 AND s.epoch = v.column10 AND s.owner = $${10 * width + 1}))
     RETURNING deliveries.id`,
);

// What was sent was sent: a row of the log, whoever settles. The same batch again changes nothing.
const insertAttempts = wideStatement<Row>(
  'delivery_insert_attempts',
  (width) =>
    `INSERT INTO delivery_attempts (delivery_id, id, attempt, started_at_ms, outcome, status, reason, remote_address, detail, response_body)
     VALUES ${renderInsertRows(10, width)} ON CONFLICT (delivery_id, id) DO NOTHING`,
);

export function settleSteps(settlements: readonly Settlement[], owner: string): Step[] {
  const results = settlements.map((one) => [
    one.hookId,
    one.deliveryId,
    one.attempts,
    one.state,
    one.lane,
    one.dueAtMs,
    one.attempt.status,
    one.attempt.startedAtMs,
    one.shard,
    one.epoch,
  ]);
  const attempts = settlements.map(({ deliveryId, attempts: before, attempt }) => [
    deliveryId,
    attempt.id,
    before + 1,
    attempt.startedAtMs,
    attempt.outcome,
    attempt.status,
    attempt.reason,
    attempt.remoteAddress,
    attempt.detail,
    attempt.responseBody,
  ]);
  return [...wideSteps(settle, results, [owner]), ...wideSteps(insertAttempts, attempts)];
}

export interface EndpointChange {
  readonly hookId: number;
  readonly fails: number;
  readonly failingSinceMs: number | null;
  /** Until when nothing is sent; null when it may. */
  readonly pausedUntilMs: number | null;
}

// −1 stands for null: a list of values has one type a column.
const changeEndpoints = wideStatement<Row>(
  'endpoint_change',
  (width) =>
    `UPDATE endpoint_queue SET fails = v.column2,
       failing_since_ms = CASE WHEN v.column3 = -1 THEN NULL ELSE v.column3 END,
       parked = CASE WHEN v.column4 = -1 THEN 0 ELSE 1 END,
       next_at_ms = CASE WHEN v.column4 = -1 THEN endpoint_queue.next_at_ms ELSE v.column4 END
     FROM (VALUES ${renderValueRows(['int', 'int', 'int', 'int'], width)}) AS v
     WHERE endpoint_queue.hook_id = v.column1
       AND endpoint_queue.held_since_ms IS NULL AND endpoint_queue.canceled_at_ms IS NULL`,
);

export function endpointSteps(changes: readonly EndpointChange[]): Step[] {
  const rows = changes.map((one) => [one.hookId, one.fails, one.failingSinceMs ?? -1, one.pausedUntilMs ?? -1]);
  return wideSteps(changeEndpoints, rows);
}

export interface Rest {
  readonly hookId: number;
  readonly version: number;
}

const headDue = (lane: number) =>
  `COALESCE((SELECT d.due_at_ms FROM deliveries d WHERE d.state = 'pending' AND d.hook_id = endpoint_queue.hook_id
     AND d.lane = ${lane} ORDER BY d.due_at_ms, d.id LIMIT 1), ${NEVER_MS})`;

// Only if nothing was enqueued since it was read, and after the settlements of the same unit.
const restEndpoints = wideStatement<{ hook_id: number }>(
  'endpoint_rest',
  (width) =>
    `UPDATE endpoint_queue SET parked = 0,
       next_at_ms = CASE WHEN ${headDue(0)} < ${headDue(1)} THEN ${headDue(0)} ELSE ${headDue(1)} END
     FROM (VALUES ${renderValueRows(['int', 'int'], width)}) AS v
     WHERE endpoint_queue.hook_id = v.column1 AND endpoint_queue.version = v.column2
       AND endpoint_queue.held_since_ms IS NULL AND endpoint_queue.canceled_at_ms IS NULL
     RETURNING endpoint_queue.hook_id`,
);

/** The endpoint has nothing due: it sleeps until its next retry, or until something is enqueued. */
export function restSteps(rests: readonly Rest[]): Step[] {
  const rows = rests.map(({ hookId, version }) => [hookId, version]);
  return wideSteps(restEndpoints, rows);
}

export interface HookResult {
  readonly hookId: number;
  readonly result: string;
  readonly status: number;
}

const writeResults = wideStatement<Row>(
  'hook_write_result',
  (width) =>
    `UPDATE hooks SET result = v.column2, result_code = v.column3
     FROM (VALUES ${renderValueRows(['int', 'text', 'int'], width)}) AS v WHERE hooks.id = v.column1`,
);

/** What the hook shows as its last answer. One row a hook. */
export function hookResultSteps(results: readonly HookResult[]): Step[] {
  const rows = results.map(({ hookId, result, status }) => [hookId, result, status]);
  return wideSteps(writeResults, rows);
}

const disableHook: Statement = statement(
  'hook_disable_failing',
  `UPDATE hooks SET disabled_at_ms = $2, disabled_reason = $3, updated_at_ms = $2 WHERE id = $1 AND disabled_at_ms IS NULL`,
);

export function disableHookStep(hookId: number, reason: string, nowMs: number): Step {
  return { statement: disableHook, parameters: [hookId, nowMs, reason] };
}

const doubtDeliveries = wideStatement<{ hook_id: number }>(
  'delivery_doubt',
  (width) =>
    `UPDATE deliveries SET state = 'pending', lane = 1, due_at_ms = $${width + 1}
     FROM (VALUES ${renderValueRows(['int'], width)}) AS v
     JOIN delivery_contents c ON c.delivery_id = v.column1
     WHERE deliveries.hook_id = c.hook_id AND deliveries.id = v.column1 AND deliveries.state = 'succeeded'
     RETURNING deliveries.hook_id`,
);

const wakeEndpoint: Statement = statement(
  'endpoint_wake',
  `UPDATE endpoint_queue SET version = version + 1,
     next_at_ms = CASE WHEN parked = 1 OR next_at_ms < $2 THEN next_at_ms ELSE $2 END
   WHERE hook_id = $1`,
);

export function wakeEndpointStep(hookId: number, atMs: number): Step {
  return { statement: wakeEndpoint, parameters: [hookId, atMs] };
}

const wakeOrigin: Statement = statement(
  'endpoint_wake_origin',
  `UPDATE endpoint_queue SET parked = 0, next_at_ms = $2, version = version + 1
   WHERE origin = $1 AND parked = 1 AND fails < $3 AND held_since_ms IS NULL AND canceled_at_ms IS NULL`,
);

/** A destination works again: what waited only for it, and did not fail often by itself, may go. */
export function wakeOriginStep(origin: string, belowFails: number, nowMs: number): Step {
  return { statement: wakeOrigin, parameters: [origin, nowMs, belowFails] };
}

/** Deliveries whose answers were perhaps not theirs are sent again. */
export async function doubtSuccess(store: Store, deliveryIds: readonly number[], nowMs: number): Promise<number> {
  const steps = wideSteps(
    doubtDeliveries,
    deliveryIds.map((id) => [id]),
    [nowMs],
  );
  const rows = (await store.writeAll(steps)).flat() as unknown as { hook_id: number }[];
  const hookIds = [...new Set(rows.map((row) => row.hook_id))].sort((a, b) => a - b);
  if (hookIds.length > 0) await store.writeAll(hookIds.map((hookId) => wakeEndpointStep(hookId, nowMs)));
  return rows.length;
}
