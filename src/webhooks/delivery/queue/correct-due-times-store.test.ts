import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { takeAllShards } from '../../../../test/support/webhooks/deliveries-store.ts';
import { type Store, statement } from '../../../database/store.ts';
import { correctTimes } from '../worker/delivery-sweeper.ts';
import { correctDueMs } from './correct-due-times-store.ts';
import { readDueHookQueues } from './delivery-queue-store.ts';
import { enqueueStatements, holdHookQueueStatement, NEVER_MS, shardOf } from './delivery-store.ts';
import { type HookQueueChange, hookQueueStatements } from './hook-queue-change-store.ts';
import { renewWorkerLease, takeShards } from './shard-store.ts';

const NOW = 1_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const ORIGIN = 'http://127.0.0.1:9';

const cases: [title: string, attempts: number, waitMs: number, correctedMs: number | undefined][] = [
  ['leaves a retry after the first failure that is due within twice its wait', 1, 12_000, undefined],
  ['leaves a retry by a clock that is a minute ahead', 1, 72_000, undefined],
  ['bounds a retry after the first failure by its longest wait', 1, HOUR_MS, 12_000],
  ['leaves the last retry of the schedule', 9, 29 * HOUR_MS, undefined],
  ['bounds the last retry of the schedule', 9, 32 * HOUR_MS, 29.8 * HOUR_MS],
  ['leaves a delivery that is reserved for a manual attempt', 0, 25_000, undefined],
  ['makes a first attempt due at once', 0, HOUR_MS, 0],
];
for (const [title, attempts, waitMs, correctedMs] of cases)
  test(`correctDueMs() ${title}`, () => {
    const corrected = correctDueMs({ attempts, dueAtMs: NOW + waitMs, nowMs: NOW });
    assert.equal(corrected === undefined ? undefined : corrected - NOW, correctedMs);
  });

const dueTimesSql = statement<{ id: number; due_at_ms: number }>(
  'test-due-times',
  'SELECT id, due_at_ms FROM deliveries WHERE hook_id = $1 ORDER BY id',
);
const nextTimesSql = statement<{ next_at_ms: number }>(
  'test-next-times',
  'SELECT next_at_ms FROM endpoint_queue WHERE hook_id = $1',
);
const planRetrySql = statement(
  'test-plan-retry',
  'UPDATE deliveries SET lane = 1, attempts = $2, due_at_ms = $3 WHERE id >= $1',
);

async function enqueue(store: Store, { count = 1, hookId = 1, nowMs = NOW }): Promise<readonly number[]> {
  const ids = await store.makeIds(count);
  const hookQueue = { hookId, origin: ORIGIN, ownerId: 'owner', nowMs };
  const event = { eventId: 1, body: Buffer.from('{}'), eventKind: 'push' as const };
  await store.writeAll(enqueueStatements(ids.map((id) => ({ ...hookQueue, ...event, id, uuid: `uuid-${id}` }))));
  return ids;
}

async function readWaits(store: Store, hookId: number): Promise<number[]> {
  return (await store.read(dueTimesSql, [hookId])).map((row) => row.due_at_ms - NOW);
}

async function readNextAt(store: Store, hookId: number): Promise<number> {
  const [row] = await store.read(nextTimesSql, [hookId]);
  return row?.next_at_ms ?? Number.NaN;
}

const ALL = { longestMs: Number.POSITIVE_INFINITY };

forEachEngine('correctTimes() makes deliveries due that a clock a day ahead had enqueued', async (store) => {
  await enqueue(store, { nowMs: NOW + DAY_MS });
  await enqueue(store, { hookId: 2 });
  assert.equal(await correctTimes(store, NOW, { longestMs: 0 }), 1);
  assert.deepEqual([await readWaits(store, 1), await readWaits(store, 2)], [[0], [0]]);
  const workerId = 'worker';
  await renewWorkerLease(store, { workerId, nowMs: NOW, expiresAtMs: NOW + 15_000 });
  await takeShards(store, { workerId, nowMs: NOW, expiresAtMs: NOW + 15_000 }, 256);
  const due = await readDueHookQueues(store, { workerId, nowMs: NOW, afterMs: -1, afterHookId: -1, limit: 10 });
  assert.deepEqual(
    due.map((row) => row.hook_id),
    [1, 2],
  );
  assert.equal(await correctTimes(store, NOW, ALL), 0, 'a second time there is nothing to correct');
});

forEachEngine('correctTimes() bounds retries that come after more than a page of others', async (store) => {
  const ids = await enqueue(store, { count: 502 });
  await store.write(planRetrySql, [ids[0]!, 9, NOW + 20 * HOUR_MS]);
  await store.write(planRetrySql, [ids.at(-1)!, 1, NOW + DAY_MS]);
  assert.equal(await correctTimes(store, NOW, { longestMs: 0 }), 0);
  assert.equal(await correctTimes(store, NOW, ALL), 1);
  const waits = await readWaits(store, 1);
  assert.equal(waits.at(-1), 12_000);
  assert.ok(waits.slice(0, -1).every((waitMs) => waitMs === 20 * HOUR_MS));
});

forEachEngine('correctTimes() ends pauses that last longer than any, and leaves what is held', async (store) => {
  for (const hookId of [1, 2, 3]) await enqueue(store, { hookId });
  const shard = shardOf(ORIGIN);
  const fence = { shard, generation: 0, epoch: (await takeAllShards(store, 'worker', NOW)).get(shard)! };
  const pauseUntil = (hookId: number, untilMs: number): HookQueueChange => {
    const pause = { sinceMs: NOW, untilMs, reason: 'failures' as const };
    return { kind: 'health', hookId, ...fence, fails: 5, failingSinceMs: NOW, openings: 1, pause };
  };
  const pauses = [pauseUntil(1, NOW + DAY_MS), pauseUntil(2, NOW + 5 * MINUTE_MS)];
  await store.writeAll(hookQueueStatements(pauses, [], { workerId: 'worker', nowMs: NOW }));
  await store.writeAll([holdHookQueueStatement(3, NOW)]);
  assert.equal(await correctTimes(store, NOW, ALL), 1);
  assert.deepEqual(
    [await readNextAt(store, 1), await readNextAt(store, 2), await readNextAt(store, 3)],
    [NOW, NOW + 5 * MINUTE_MS, NEVER_MS],
  );
});
