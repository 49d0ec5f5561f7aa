import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeDueRow } from '../../../../test/support/webhooks/due-hook-queue.ts';
import { realWorld } from '../../../world.ts';
import { OUTSIDE_SHARDS } from '../queue/attempt-result-store.ts';
import { OWNER_ROOM } from '../schedule/concurrency-limits.ts';
import { recordRead } from './hook-queue.ts';
import {
  admit,
  createHookQueueTable,
  drain,
  ensureHookQueue,
  hasSleep,
  isNews,
  LINGER_MS,
  listSleeps,
  listToRefill,
  markStored,
  pickJobs,
  REFILL_BELOW,
} from './hook-queue-table.ts';

const DUE = makeDueRow({ hook_id: 1 });

test("the stored result of a manual attempt leaves the worker's own attempt of the delivery in its place", () => {
  const table = createHookQueueTable(realWorld);
  const hookQueue = ensureHookQueue(table, DUE)!;
  const row = { hook_id: 1, id: 7, lane: 0, body_bytes: 10 };
  admit(table, hookQueue, row);
  assert.equal(pickJobs(table).length, 1);
  const { stored } = hookQueue;
  markStored(table, [{ hookId: 1, deliveryId: 7, epoch: OUTSIDE_SHARDS.epoch }], []);
  admit(table, hookQueue, row);
  assert.deepEqual([pickJobs(table).length, table.uncommitted], [0, 1]);
  assert.equal(hookQueue.stored, stored + 1);
  markStored(table, [{ hookId: 1, deliveryId: 7, epoch: 2 }], []);
  admit(table, hookQueue, row);
  assert.deepEqual([hookQueue.deliveryIds.size, table.uncommitted], [1, 0]);
});

test('a hook queue whose hook has moved to another origin drains before that of the new origin is created', () => {
  const table = createHookQueueTable(realWorld);
  const hookQueue = ensureHookQueue(table, DUE)!;
  for (const id of [7, 8]) admit(table, hookQueue, { hook_id: 1, id, lane: 0, body_bytes: 10 });
  assert.equal(pickJobs(table).length, 2);
  const moved = makeDueRow({ hook_id: 1, origin: 'https://new.example', version: 2 });
  assert.equal(ensureHookQueue(table, moved), undefined, 'deliveries to the old origin are under way');
  for (const deliveryId of [7, 8]) markStored(table, [{ hookId: 1, deliveryId, epoch: 1 }], []);
  assert.equal(ensureHookQueue(table, moved)?.origin, 'https://new.example');
  const back = makeDueRow({ hook_id: 1, version: 3 });
  assert.equal(ensureHookQueue(table, back)?.origin, DUE.origin, 'nothing is under way');
});

test('an owner has a bounded number of hook queues in memory; the rest wait in their rows', () => {
  const { maxOfOwner } = OWNER_ROOM;
  const table = createHookQueueTable(realWorld);
  const first = ensureHookQueue(table, makeDueRow({ hook_id: 1 }))!;
  for (let hookId = 2; hookId <= maxOfOwner; hookId += 1) ensureHookQueue(table, makeDueRow({ hook_id: hookId }));
  const further = makeDueRow({ hook_id: maxOfOwner + 1 });
  assert.deepEqual([ensureHookQueue(table, further), isNews(table, further)], [undefined, false]);
  const ofOther = makeDueRow({ hook_id: maxOfOwner + 2, owner_id: 'other' });
  assert.equal(isNews(table, ofOther), true);
  assert.equal(ensureHookQueue(table, ofOther)?.ownerId, 'other');
  assert.equal(ensureHookQueue(table, DUE), first, 'those in memory stay');
  drain(table, first);
  assert.equal(isNews(table, further), true);
  assert.equal(ensureHookQueue(table, further)?.hookId, maxOfOwner + 1);
});

test('hook queues with more that is due take turns when they are read', () => {
  const table = createHookQueueTable(realWorld);
  for (let hookId = 1; hookId <= 3; hookId += 1) ensureHookQueue(table, makeDueRow({ hook_id: hookId }));
  const read = (): number[] =>
    listToRefill(table, 2).map((hookQueue) => {
      recordRead(hookQueue, { hasMoreDue: { first: true, retry: false }, enqueues: 0, lastId: 0 }, 0);
      return hookQueue.hookId;
    });
  assert.deepEqual(
    [read(), read(), read()],
    [
      [1, 2],
      [3, 1],
      [2, 3],
    ],
  );
});

test('hook queues with enough waiting deliveries are not checked again until one is picked', (t) => {
  const table = createHookQueueTable(realWorld);
  for (let hookId = 1; hookId <= 10_000; hookId += 1) {
    const owner_id = `owner-${hookId % 10}`;
    const hookQueue = ensureHookQueue(table, makeDueRow({ hook_id: hookId, owner_id }))!;
    recordRead(hookQueue, { hasMoreDue: { first: true, retry: false }, enqueues: 0, lastId: 0 }, 0);
    for (let count = 0; count < REFILL_BELOW; count += 1)
      admit(table, hookQueue, { hook_id: hookId, id: REFILL_BELOW * hookId + count, lane: 0, body_bytes: 10 });
  }
  const { mock } = t.mock.method(table.scheduler, 'countWaiting');
  assert.deepEqual(listToRefill(table, 9), []);
  mock.resetCalls();
  assert.deepEqual([listToRefill(table, 9), mock.callCount()], [[], 0]);
  const hookIds = pickJobs(table).map((job) => job.hookId);
  assert.ok(hookIds.length > 0);
  assert.deepEqual(new Set(listToRefill(table, 999).map((hookQueue) => hookQueue.hookId)), new Set(hookIds));
  assert.equal(mock.callCount(), new Set(hookIds).size);
});

test('a hook queue that has left the memory is neither read nor put to sleep', () => {
  let monotonicMs = 0;
  const table = createHookQueueTable({ ...realWorld, monotonicMs: () => monotonicMs });
  const loading = ensureHookQueue(table, DUE)!;
  const loaded = ensureHookQueue(table, makeDueRow({ hook_id: 2 }))!;
  recordRead(loaded, { hasMoreDue: { first: false, retry: false }, enqueues: 0, lastId: 0 }, 0);
  monotonicMs = LINGER_MS;
  assert.deepEqual([listToRefill(table, 9), hasSleep(table)], [[loading], true]);
  drain(table, loading);
  markStored(table, [], listSleeps(table, []));
  assert.deepEqual([listToRefill(table, 9), hasSleep(table), table.hookQueues.size], [[], false, 0]);
});

for (const [title, hookQueues, afterMs, sleeps] of [
  ['stays awake for a while after its last delivery', 256, LINGER_MS - 1, false],
  ['sleeps when nothing more has come', 256, LINGER_MS, true],
  ['sleeps soon while many are in memory', 257, 250, true],
] as const)
  test(`a hook queue ${title}`, () => {
    let monotonicMs = 0;
    const table = createHookQueueTable({ ...realWorld, monotonicMs: () => monotonicMs });
    for (let hookId = 1; hookId <= hookQueues; hookId += 1) {
      const hookQueue = ensureHookQueue(table, makeDueRow({ hook_id: hookId }))!;
      recordRead(hookQueue, { hasMoreDue: { first: false, retry: false }, enqueues: 0, lastId: 0 }, 0);
      admit(table, hookQueue, { hook_id: hookId, id: hookId, lane: 0, body_bytes: 10 });
      markStored(table, [{ hookId, deliveryId: hookId, epoch: 1 }], []);
    }
    monotonicMs = afterMs;
    assert.equal(hasSleep(table), sleeps);
  });

for (const [title, afterMs, underWay, state] of [
  ['is read again a second after its last read while an attempt is under way', 1000, 1, 'loading'],
  ['is not read again sooner', 999, 1, 'loaded'],
  ['is not read again while nothing is under way', 1000, 0, 'loaded'],
] as const)
  test(`a hook queue that a scan finds unchanged ${title}`, () => {
    let monotonicMs = 0;
    const table = createHookQueueTable({ ...realWorld, monotonicMs: () => monotonicMs });
    const hookQueue = ensureHookQueue(table, DUE)!;
    recordRead(hookQueue, { hasMoreDue: { first: false, retry: false }, enqueues: 0, lastId: 0 }, 0);
    for (let id = 1; id <= underWay; id += 1) admit(table, hookQueue, { hook_id: 1, id, lane: 0, body_bytes: 10 });
    monotonicMs = afterMs;
    assert.equal(ensureHookQueue(table, DUE)?.state, state);
  });
