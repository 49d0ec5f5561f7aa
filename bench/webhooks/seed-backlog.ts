/**
 * Inserts a million waiting deliveries as the engine would, but in a few statements: the same number for each endpoint. Those
 * of the dead endpoints are due, those of the healthy ones wait for a retry later today.
 */
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/startup/open-store.ts';
import { type Store, statement } from '../../src/database/store.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { shardOf } from '../../src/webhooks/delivery/queue/delivery-store.ts';
import { realWorld } from '../../src/world.ts';
import { insertTestHook } from '../../test/support/webhooks/deliveries-store.ts';
import type { BenchHook, EngineOptions } from './engine.ts';

const DEAD_ENDPOINTS = 300;
const FIRST_DEAD_HOOK = 100_000;
const HOUR_MS = 3_600_000;

const numbers = 'WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1 - 1)';
const insertContentsSql = statement(
  'bench-insert-contents',
  `INSERT INTO delivery_contents (delivery_id, hook_id, event_id, uuid, body)
   ${numbers} SELECT CAST($2 AS BIGINT) + n, CAST($3 AS BIGINT), 1, CAST($2 AS BIGINT) + n, CAST($4 AS {BLOB}) FROM numbers`,
);
const insertDeliveriesSql = statement(
  'bench-insert-deliveries',
  `INSERT INTO deliveries (hook_id, id, event_kind, state, lane, attempts, schedule_from, due_at_ms, status, body_bytes, created_at_ms)
   ${numbers} SELECT CAST($3 AS BIGINT), CAST($2 AS BIGINT) + n, 'push', 'pending', CAST($5 AS BIGINT), CAST($5 AS BIGINT), 0, CAST($4 AS BIGINT), 0, 200, CAST($4 AS BIGINT) FROM numbers`,
);
const insertEndpointSql = statement(
  'bench-insert-endpoint',
  `INSERT INTO endpoint_queue (hook_id, owner_id, origin, shard, next_at_ms, version, parked, fails)
   VALUES ($1, $2, $3, $4, $5, 1, 0, 0)`,
);

export async function seedBacklog(
  options: EngineOptions,
  healthy: readonly BenchHook[],
  pending: number,
): Promise<void> {
  const store = await openSeedStore(options);
  const each = Math.ceil(pending / (healthy.length + DEAD_ENDPOINTS));
  const nowMs = realWorld.nowMs();
  for (let index = 0; index < DEAD_ENDPOINTS; index += 1) {
    const hook = createDeadHook(index);
    await insertTestHook(store, hook);
    await seedEndpoint(store, hook, { each, isRetry: false, dueAtMs: nowMs });
  }
  for (const hook of healthy) await seedEndpoint(store, hook, { each, isRetry: true, dueAtMs: nowMs + 6 * HOUR_MS });
  await store[Symbol.asyncDispose]();
}

function openSeedStore({ dataDir, databaseUrl }: EngineOptions): Promise<Store> {
  const log = createLog('warn');
  return openStore({ dataDir, databaseUrl, poolSize: 2, migrations, world: realWorld, log });
}

/** Another address of the loopback range 127.0.0.0/8, at which no process listens. */
function createDeadHook(index: number): BenchHook {
  const url = `http://127.9.${Math.floor(index / 200)}.${(index % 200) + 1}:9999/hook`;
  return { id: FIRST_DEAD_HOOK + index, url, ownerId: `dead-${index % 50}` };
}

interface Seed {
  readonly each: number;
  readonly isRetry: boolean;
  readonly dueAtMs: number;
}

async function seedEndpoint(store: Store, hook: BenchHook, { each, isRetry, dueAtMs }: Seed): Promise<void> {
  const blob = store.engine === 'sqlite' ? 'BLOB' : 'BYTEA';
  const contents = { ...insertContentsSql, text: insertContentsSql.text.replace('{BLOB}', blob) };
  const firstId = 1_000_000_000 + hook.id * each;
  const { origin } = new URL(hook.url);
  await store.writeAll([
    { statement: contents, parameters: [each, firstId, hook.id, new Uint8Array(200).fill(97)] },
    { statement: insertDeliveriesSql, parameters: [each, firstId, hook.id, dueAtMs, isRetry ? 1 : 0] },
    { statement: insertEndpointSql, parameters: [hook.id, hook.ownerId, origin, shardOf(origin), dueAtMs] },
  ]);
}

const uuidsOfSql = statement<{ delivery_id: number; uuid: string }>(
  'bench-uuids',
  'SELECT delivery_id, uuid FROM delivery_contents WHERE delivery_id >= $1 AND delivery_id <= $2',
);

/** The names under which deliveries arrive. */
export async function readUuids(
  options: EngineOptions,
  committed: readonly (readonly [id: number, atMs: number])[],
): Promise<Map<number, string>> {
  const store = await openSeedStore(options);
  const ids = committed.map(([id]) => id);
  const rows = await store.read(uuidsOfSql, [Math.min(...ids), Math.max(...ids)]);
  await store[Symbol.asyncDispose]();
  return new Map(rows.map((row) => [row.delivery_id, row.uuid]));
}
