import assert from 'node:assert/strict';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { takeAllShards } from '../../../../test/support/webhooks/deliveries-store.ts';
import { enqueue, NOW, ORIGIN, OWNER, readDue, result } from '../../../../test/support/webhooks/delivery-queue.ts';
import { statement } from '../../../database/store.ts';
import { attemptResultStatements } from './attempt-result-store.ts';
import { type DueHookQueue, readContents, readSmallWaiting, readWaiting, SMALL_READ } from './delivery-queue-store.ts';
import { reopenUnverified, reserveTest } from './delivery-restart-store.ts';
import { countPendingDeliveries, enqueueStatements, shardOf } from './delivery-store.ts';
import { hookQueueStatements } from './hook-queue-change-store.ts';

const BY_OWNER = { workerId: OWNER, nowMs: NOW };
const sleepOf = ({ hook_id, version, shard, epoch }: DueHookQueue) => ({ hookId: hook_id, version, shard, epoch });

const attemptNumbersSql = statement<{ attempt: number }>(
  'test-attempts',
  'SELECT attempt FROM delivery_attempts ORDER BY attempt',
);
const stateOfSql = statement<{ state: string; attempts: number }>(
  'test-state',
  'SELECT state, attempts FROM deliveries WHERE id = $1',
);

forEachEngine('an enqueued delivery makes its hook queue due for the owner of its shard only', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 7);
  const [due] = await readDue(store);
  assert.equal(due?.hook_id, 7);
  assert.equal(due?.shard, shardOf(ORIGIN));
  assert.deepEqual(await readDue(store, NOW, 'worker-2'), []);
  assert.deepEqual(await readWaiting(store, [{ hookId: 7, limits: { first: 10, retry: 10 } }], NOW), [
    { hook_id: 7, id, lane: 0, body_bytes: 2 },
  ]);
  const [content] = await readContents(store, [{ hookId: 7, id }]);
  assert.equal(content?.uuid, `uuid-${id}`);
  assert.equal(content?.url, null);
  assert.equal(await countPendingDeliveries(store), 1);
});

forEachEngine('waiting deliveries come by due time, a few of each hook queue, in both lanes', async (store) => {
  const ids: number[] = [];
  for (let count = 0; count < 5; count += 1) ids.push(await enqueue(store, 1, NOW + count));
  for (let count = 0; count < 3; count += 1) await enqueue(store, 2, NOW);
  const requests = Array.from({ length: 70 }, (_, hookId) => ({ hookId, limits: { first: 2, retry: 2 } }));
  const rows = await readWaiting(store, requests, NOW + 3);
  assert.deepEqual(
    rows.filter((row) => row.hook_id === 1).map((row) => row.id),
    ids.slice(0, 2),
  );
  assert.equal(rows.filter((row) => row.hook_id === 2).length, 2);
});

forEachEngine('few waiting deliveries come with their contents, but for large bodies', async (store) => {
  const small = await enqueue(store, 1, NOW);
  const [large = 0] = await store.makeIds(1);
  const base = { id: large, hookId: 1, eventId: 1, uuid: 'large', eventKind: 'push' as const, nowMs: NOW + 1 };
  await store.writeAll(enqueueStatements([{ ...base, body: Buffer.alloc(20_000), origin: ORIGIN, ownerId: 'owner' }]));
  for (let count = 0; count <= SMALL_READ; count += 1) await enqueue(store, 2, NOW);
  await enqueue(store, 1, NOW + 10);
  const { rows, contents } = await readSmallWaiting(store, [1, 2, 3], NOW + 5);
  assert.deepEqual(
    rows.filter((row) => row.hook_id === 1).map((row) => row.id),
    [small, large],
  );
  assert.equal(rows.filter((row) => row.hook_id === 2).length, SMALL_READ);
  const [read] = await readContents(store, [{ hookId: 1, id: small }]);
  const {
    lane: _lane,
    body_bytes: _bytes,
    ...found
  } = contents.find(({ id }) => id === small) as never as object & {
    lane: number;
    body_bytes: number;
  };
  assert.deepEqual(found, { ...read });
  assert.ok(!contents.some(({ id }) => id === large));
});

forEachEngine('a result counts once, and never for a worker that lost the shard', async (store) => {
  const epochs = await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 1);
  const epoch = epochs.get(shardOf(ORIGIN))!;
  await store.writeAll(attemptResultStatements([result(1, id, { epoch: epoch - 1 })], OWNER));
  await store.writeAll(attemptResultStatements([result(1, id, { epoch })], 'worker-2'));
  assert.deepEqual(await store.read(stateOfSql, [id]), [{ state: 'pending', attempts: 2 }], 'both were sent');
  const stored = result(1, id, { epoch });
  const [first] = await store.writeAll(attemptResultStatements([stored], OWNER));
  assert.deepEqual(first, [{ id }]);
  const [again] = await store.writeAll(attemptResultStatements([stored], OWNER));
  assert.deepEqual(again, []);
  assert.deepEqual(await store.read(stateOfSql, [id]), [{ state: 'succeeded', attempts: 3 }]);
  assert.deepEqual(await store.read(attemptNumbersSql), [{ attempt: 1 }, { attempt: 2 }, { attempt: 3 }]);
  const late = result(1, id, { epoch, nextState: 'pending', dueAtMs: NOW + 1 });
  await store.writeAll(attemptResultStatements([late], OWNER));
  assert.deepEqual(
    await store.read(stateOfSql, [id]),
    [{ state: 'succeeded', attempts: 4 }],
    'a delivery that has ended does not change',
  );
});

forEachEngine('a batch of any size is stored', async (store) => {
  const epochs = await takeAllShards(store, OWNER, NOW);
  const epoch = epochs.get(shardOf(ORIGIN))!;
  const ids: number[] = [];
  for (let count = 0; count < 87; count += 1) ids.push(await enqueue(store, count % 9));
  const batch = ids.map((id, index) => result(index % 9, id, { epoch }));
  const rows = (await store.writeAll(attemptResultStatements(batch, OWNER))).flat();
  assert.equal(rows.length, 87);
  assert.equal(await countPendingDeliveries(store), 0);
});

forEachEngine('a hook queue sleeps until its next retry, but not over what was just enqueued', async (store) => {
  const epochs = await takeAllShards(store, OWNER, NOW);
  const epoch = epochs.get(shardOf(ORIGIN))!;
  const id = await enqueue(store, 1);
  const [due] = await readDue(store);
  const retry = result(1, id, { epoch, nextState: 'pending', nextLane: 1, dueAtMs: NOW + 5000 });
  await store.writeAll([
    ...attemptResultStatements([retry], OWNER),
    ...hookQueueStatements([], [sleepOf(due!)], BY_OWNER),
  ]);
  assert.deepEqual(await readDue(store), []);
  assert.deepEqual(await readDue(store, NOW + 4999), []);
  const [later] = await readDue(store, NOW + 5000);
  await enqueue(store, 1, NOW + 5001);
  await store.writeAll(hookQueueStatements([], [sleepOf(later!)], BY_OWNER));
  assert.equal((await readDue(store, NOW + 5001)).length, 1);
});

forEachEngine('a hook queue with nothing left sleeps until it is enqueued to', async (store) => {
  const epochs = await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 1);
  const [due] = await readDue(store);
  const stored = result(1, id, { epoch: epochs.get(shardOf(ORIGIN))! });
  await store.writeAll([
    ...attemptResultStatements([stored], OWNER),
    ...hookQueueStatements([], [sleepOf(due!)], BY_OWNER),
  ]);
  assert.deepEqual(await readDue(store, NOW * 1000), []);
  await enqueue(store, 1, NOW + 10);
  assert.equal((await readDue(store, NOW + 10)).length, 1);
});

forEachEngine('the delivery of a test is claimed once, and left to the workers after that', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 1, NOW, NOW + 30_000);
  assert.deepEqual(await readDue(store), []);
  assert.equal(await reserveTest(store, id, NOW + 20_000), 1);
  assert.equal((await readWaiting(store, [{ hookId: 1, limits: { first: 5, retry: 5 } }], NOW)).length, 0);
  await store.writeAll(attemptResultStatements([result(1, id, { epoch: -1, foundDueAtMs: NOW + 20_000 })], 'missing'));
  assert.equal(await reserveTest(store, id, NOW + 20_000), undefined);
  assert.deepEqual(await store.read(stateOfSql, [id]), [{ state: 'succeeded', attempts: 1 }]);
});

forEachEngine('a doubtful success is pending again', async (store) => {
  const epochs = await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 1);
  await store.writeAll(attemptResultStatements([result(1, id, { epoch: epochs.get(shardOf(ORIGIN))! })], OWNER));
  assert.equal(await reopenUnverified(store, [id, 12345], NOW), 1);
  assert.deepEqual(await store.read(stateOfSql, [id]), [{ state: 'pending', attempts: 1 }]);
});
