import { type Store, statement } from '../../../src/database/store.ts';
import { type CommittedDelivery, describeCommitted } from '../../../src/webhooks/delivery/queue/committed-delivery.ts';
import {
  type EnqueueVersions,
  enqueueStatements,
  type NewDelivery,
  readEnqueueVersions,
} from '../../../src/webhooks/delivery/queue/delivery-store.ts';
import { renewWorkerLease, takeShards } from '../../../src/webhooks/delivery/queue/shard-store.ts';
import type { StoredHook } from '../../../src/webhooks/hooks/hook-store.ts';
import { realWorld } from '../../../src/world.ts';
import { waitUntil } from '../basics/wait-until.ts';

/** Writes hooks, deliveries and their outcomes directly into the store, without the rules of the API. */

const insertRepositorySql = statement(
  'test-insert-repository',
  `INSERT INTO repositories (id, owner_kind, owner_id, owner_login, path, path_key, name, description, is_private,
     default_branch, web_url, http_url, ssh_url, created_at_ms, updated_at_ms)
   VALUES ($1, 'user', $2, 'owner', $3, $3, $3, '', 0, 'main', '', '', '', 0, 0) ON CONFLICT (id) DO NOTHING`,
);
const insertHookSql = statement(
  'test-insert-hook',
  `INSERT INTO hooks (id, repository_id, url, encryption_type, profile, secret, push_events, tag_push_events, issues_events,
     note_events, merge_requests_events, result_code, created_at_ms, updated_at_ms)
   VALUES ($1, $2, $3, 1, 'gitcode', $4, 1, 0, 0, 0, 0, 0, 0, 0)`,
);

export interface TestHook {
  readonly id: number;
  readonly url: string;
  readonly ownerId?: string;
  readonly secret?: Uint8Array;
}

export async function insertTestHook(store: Store, { id, url, ownerId = 'owner', secret }: TestHook): Promise<void> {
  await store.write(insertRepositorySql, [id, ownerId, `repository-${id}`]);
  await store.write(insertHookSql, [id, id, url, secret ?? null]);
}

const insertEventSql = statement(
  'test-insert-event',
  `INSERT INTO events (id, repository_id, kind, source, content, created_at_ms) VALUES (1, $1, 'push', $2, '{}', 0)`,
);

/** The event of all test deliveries, for a hook whose id is that of its repository. */
export async function insertTestEvent(store: Store, hookId: number, source: string): Promise<void> {
  await store.write(insertEventSql, [hookId, source]);
}

export interface TestDelivery {
  readonly hookId: number;
  readonly url: string;
  readonly body?: Uint8Array;
  readonly ownerId?: string;
  readonly dueAtMs?: number;
  readonly nowMs?: number;
}

/** The origin may be invalid: a row that is written without checks may have any text as its URL. */
export async function enqueueTestDelivery(store: Store, delivery: TestDelivery): Promise<number> {
  const made = await createTestDelivery(store, delivery);
  await store.writeAll(enqueueStatements([made]));
  return made.id;
}

const fillLogSql = statement(
  'test-fill-log',
  `INSERT INTO deliveries (hook_id, id, event_kind, state, lane, attempts, schedule_from, due_at_ms, status, body_bytes,
     created_at_ms, attempted_at_ms)
   WITH RECURSIVE numbers (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
   SELECT CAST($1 AS BIGINT), n + $3, 'push', 'succeeded', 0, 1, 0, 0, 200, 7, 1, 1 FROM numbers`,
);
const fillContentsSql = statement(
  'test-fill-contents',
  `INSERT INTO delivery_contents (delivery_id, hook_id, event_id, uuid, body)
   SELECT id, hook_id, 1, '-', $2 FROM deliveries WHERE hook_id = $1 AND id >= $3 AND id < $4`,
);

/** A log of accepted deliveries with the ids from `firstId`. */
export async function fillTestLog(
  store: Store,
  { hookId, rows, firstId = 1 }: { readonly hookId: number; readonly rows: number; readonly firstId?: number },
): Promise<void> {
  await store.write(fillLogSql, [hookId, rows, firstId - 1]);
  await store.write(fillContentsSql, [hookId, Buffer.from('{"a":1}'), firstId, firstId + rows]);
}

/** Not stored yet. */
async function createTestDelivery(store: Store, delivery: TestDelivery): Promise<NewDelivery> {
  const {
    hookId,
    url,
    body = Buffer.from('{"a":1}'),
    ownerId = 'owner',
    dueAtMs,
    nowMs = realWorld.nowMs(),
  } = delivery;
  const [id = 0] = await store.makeIds(1);
  const origin = URL.canParse(url) ? new URL(url).origin : url.slice(0, 50);
  const base = { id, hookId, eventId: 1, uuid: realWorld.uuid(), body, eventKind: 'push' as const, origin, ownerId };
  return { ...base, nowMs, ...(dueAtMs === undefined ? {} : { dueAtMs }) };
}

const generationSql = statement<{ generation: number }>(
  'test-generation',
  'SELECT generation FROM endpoint_queue WHERE hook_id = $1',
);

/** Stores it, and describes it as the intake does for the workers of its process. */
export async function commitTestDelivery(
  store: Store,
  hook: StoredHook,
  delivery: TestDelivery,
): Promise<CommittedTestDelivery> {
  const made = await createTestDelivery(store, delivery);
  const [{ generation } = { generation: 0 }] = await store.read(generationSql, [hook.hook.id]);
  const target = { ...hook, generation };
  const answers = await store.writeAll(enqueueStatements([made]));
  return { id: made.id, committed: describeCommitted(made, target), versions: readEnqueueVersions(answers) };
}

export interface CommittedTestDelivery {
  readonly id: number;
  readonly committed: CommittedDelivery;
  readonly versions: EnqueueVersions;
}

export interface DeliveryRow {
  readonly id: number;
  readonly state: string;
  readonly attempts: number;
  readonly status: number;
  readonly due_at_ms: number;
}

const deliveryByIdSql = statement<DeliveryRow>(
  'test-delivery-by-id',
  'SELECT id, state, attempts, status, due_at_ms FROM deliveries WHERE id = $1',
);

export async function readDelivery(store: Store, id: number): Promise<DeliveryRow> {
  const [row] = await store.read(deliveryByIdSql, [id]);
  if (row === undefined) throw new Error(`There is no delivery ${id}`);
  return row;
}

/** Waits until the delivery has been attempted this often or has ended. */
export async function waitForDelivery(
  store: Store,
  id: number,
  isThere: (row: DeliveryRow) => boolean = (row) => row.state !== 'pending',
): Promise<DeliveryRow> {
  return await waitUntil(async () => {
    const row = await readDelivery(store, id);
    return isThere(row) && row;
  }, 10);
}

const attemptsOfSql = statement<{
  attempt: number;
  outcome: string;
  status: number;
  reason: string | null;
  remote_address: string | null;
  detail: string;
}>(
  'test-attempts-of',
  'SELECT attempt, outcome, status, reason, remote_address, detail FROM delivery_attempts WHERE delivery_id = $1 ORDER BY id',
);

export async function readAttempts(store: Store, id: number) {
  return await store.read(attemptsOfSql, [id]);
}

/** The shards that the worker gets, with their epochs. */
export async function takeAllShards(store: Store, owner: string, nowMs: number): Promise<Map<number, number>> {
  const times = { workerId: owner, nowMs, expiresAtMs: nowMs + 15_000 };
  await renewWorkerLease(store, times);
  const shards = await takeShards(store, times, 256);
  return new Map(shards.map(({ shard, epoch }) => [shard, epoch]));
}
