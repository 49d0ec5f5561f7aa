/** A million deliveries that wait for dead endpoints, written as the engines would have, but in a few statements. */
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/open-store.ts';
import { statement } from '../../src/database/store.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { shardOf } from '../../src/webhooks/delivery-store.ts';
import { realWorld } from '../../src/world.ts';
import { insertTestHook } from '../../test/support/deliveries-store.ts';
import type { EngineOptions } from './engine.ts';

const DEAD_ENDPOINTS = 300;
const FIRST_DEAD_HOOK = 100_000;

const numbers = 'WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1 - 1)';
const insertContents = statement(
  'bench_insert_contents',
  `INSERT INTO delivery_contents (delivery_id, hook_id, event_id, uuid, body)
   ${numbers} SELECT CAST($2 AS BIGINT) + n, CAST($3 AS BIGINT), 1, CAST($2 AS BIGINT) + n, CAST($4 AS {BLOB}) FROM numbers`,
);
const insertDeliveries = statement(
  'bench_insert_deliveries',
  `INSERT INTO deliveries (hook_id, id, event_kind, state, lane, attempts, schedule_from, due_at_ms, status, body_bytes, created_at_ms)
   ${numbers} SELECT CAST($3 AS BIGINT), CAST($2 AS BIGINT) + n, 'push', 'pending', 0, 0, 0, CAST($4 AS BIGINT), 0, 200, CAST($4 AS BIGINT) FROM numbers`,
);
const insertEndpoint = statement(
  'bench_insert_endpoint',
  `INSERT INTO endpoint_queue (hook_id, owner_id, origin, shard, next_at_ms, version, parked, fails)
   VALUES ($1, 'dead', $2, $3, $4, 1, 0, 0)`,
);

export async function seedBacklog(options: EngineOptions, pending: number): Promise<void> {
  const store = await openStore({
    dataDir: options.dataDir,
    databaseUrl: options.databaseUrl,
    poolSize: 2,
    migrations,
    world: realWorld,
    log: createLog('warn'),
  });
  const each = Math.ceil(pending / DEAD_ENDPOINTS);
  const nowMs = realWorld.nowMs();
  const blob = store.engine === 'sqlite' ? 'BLOB' : 'BYTEA';
  const contents = { ...insertContents, text: insertContents.text.replace('{BLOB}', blob) };
  for (let index = 0; index < DEAD_ENDPOINTS; index += 1) {
    const hookId = FIRST_DEAD_HOOK + index;
    // Loopback is a whole /8, and nobody listens there.
    const url = `http://127.9.${Math.floor(index / 200)}.${(index % 200) + 1}:9999/hook`;
    await insertTestHook(store, { id: hookId, url, ownerId: `dead-${index % 50}` });
    const firstId = 1_000_000_000 + index * each;
    const { origin } = new URL(url);
    await store.writeAll([
      { statement: contents, parameters: [each, firstId, hookId, new Uint8Array(200).fill(97)] },
      { statement: insertDeliveries, parameters: [each, firstId, hookId, nowMs] },
      { statement: insertEndpoint, parameters: [hookId, origin, shardOf(origin), nowMs] },
    ]);
  }
  await store[Symbol.asyncDispose]();
}

const uuidsOf = statement<{ delivery_id: number; uuid: string }>(
  'bench_uuids',
  'SELECT delivery_id, uuid FROM delivery_contents WHERE delivery_id >= $1 AND delivery_id <= $2',
);

/** The names under which deliveries arrived. */
export async function readUuids(options: EngineOptions, ids: readonly number[]): Promise<Map<number, string>> {
  const store = await openStore({
    dataDir: options.dataDir,
    databaseUrl: options.databaseUrl,
    poolSize: 2,
    migrations,
    world: realWorld,
    log: createLog('warn'),
  });
  const rows = await store.read(uuidsOf, [Math.min(...ids), Math.max(...ids)]);
  await store[Symbol.asyncDispose]();
  return new Map(rows.map((row) => [row.delivery_id, row.uuid]));
}
