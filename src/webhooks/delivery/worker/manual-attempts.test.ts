import assert from 'node:assert/strict';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestEvent,
  insertTestHook,
  readAttempts,
  readDelivery,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import {
  createTestWorker,
  startTestWorker,
  waitForHook,
  waitForHookQueue,
} from '../../../../test/support/webhooks/delivery-worker.ts';
import { type Store, statement } from '../../../database/store.ts';
import { realWorld } from '../../../world.ts';

forEachEngine('a test is attempted at once without a running worker, and once only', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await using worker = createTestWorker(store);
  const nowMs = realWorld.nowMs();
  const id = await enqueueTestDelivery(store, { hookId: 1, url, dueAtMs: nowMs + 30_000 });
  const [first, second] = await Promise.all([1, 2].map(() => worker.manual.test(id, nowMs + 10_000)));
  assert.equal([first, second].filter((report) => report !== undefined).length, 1);
  assert.equal((await readDelivery(store, id)).state, 'succeeded');
  const hook = await waitForHook(store, 1);
  assert.deepEqual([hook.result, hook.result_code], ['ok', 200]);
  assert.equal(receiver.received.length, 1);
});

forEachEngine('a test that fails is attempted once, on a disabled hook too', async (store) => {
  await using receiver = await startReceiver((_, response) => {
    response.statusCode = 503;
    response.end();
  });
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await insertTestEvent(store, 1, 'test');
  await store.write(statement('test-disable', 'UPDATE hooks SET disabled_at_ms = 1 WHERE id = 1'));
  await using worker = createTestWorker(store);
  const nowMs = realWorld.nowMs();
  const id = await enqueueTestDelivery(store, { hookId: 1, url, dueAtMs: nowMs + 30_000 });
  assert.equal((await worker.manual.test(id, nowMs + 10_000))?.status, 503);
  const { state, attempts } = await readDelivery(store, id);
  assert.deepEqual([state, attempts], ['dead', 1]);
  assert.equal(receiver.received.length, 1);
});

interface Schedule {
  readonly lane: number;
  /** Attempts so far, none of which counts in the present schedule. */
  readonly attempts: number;
}

const takenOver: [title: string, source: string, schedule: Schedule, end: string][] = [
  ['a test that no process has begun is attempted once by a worker', 'test', { lane: 0, attempts: 0 }, 'dead'],
  ['a test whose process has stored no result is attempted once more', 'test', { lane: 1, attempts: 0 }, 'dead'],
  ['a test whose result came too late is attempted once more', 'test', { lane: 1, attempts: 1 }, 'dead'],
  ['a redelivery whose process has stored no result is retried', 'api', { lane: 1, attempts: 1 }, 'pending'],
];
const scheduleSql = statement('test-schedule', 'UPDATE deliveries SET lane = $1, attempts = $2, schedule_from = $2');
for (const [title, source, { lane, attempts }, end] of takenOver)
  forEachEngine(title, async (store) => {
    await using receiver = await startReceiver((_, response) => void response.writeHead(503).end());
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    await insertTestEvent(store, 1, source);
    const id = await enqueueTestDelivery(store, { hookId: 1, url, dueAtMs: realWorld.nowMs() + 300 });
    await store.write(scheduleSql, [lane, attempts]);
    await using worker = startTestWorker(store);
    worker.wake();
    assert.equal((await waitForDelivery(store, id, (row) => row.attempts > attempts)).state, end);
  });

forEachEngine(
  'a redelivery is sent at once, even during a pause of its hook, and its success ends the pause',
  async (store) => {
    let status = 503;
    await using receiver = await startReceiver((_, response) => {
      response.statusCode = status;
      response.end();
    });
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    const ids: number[] = [];
    for (let count = 0; count < 30; count += 1) ids.push(await enqueueTestDelivery(store, { hookId: 1, url }));
    await using worker = startTestWorker(store);
    worker.wake();
    await waitForHookQueue(store, 1, (row) => row.parked === 1);
    const failing = await worker.manual.redeliver(1, ids[29]!);
    assert.equal((await failing?.attempt)?.status, 503);
    assert.equal((await readDelivery(store, ids[29]!)).attempts, 1);
    assert.equal((await waitForHookQueue(store, 1)).parked, 1);
    status = 200;
    const working = await worker.manual.redeliver(1, ids[28]!);
    assert.equal((await working?.attempt)?.status, 200);
    assert.equal((await readDelivery(store, ids[28]!)).state, 'succeeded');
    await waitForHookQueue(store, 1, (row) => row.parked === 0);
    for (const id of ids.slice(20, 28)) assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
  },
);

forEachEngine('a redelivery that is answered with 429 pauses nothing', async (store) => {
  const answers = [200, 429, 200];
  await using receiver = await startReceiver((_, response, index) => {
    response.writeHead(answers[index] ?? 200, { 'retry-after': '200' }).end();
  });
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  const first = await enqueueTestDelivery(store, { hookId: 1, url });
  await using worker = startTestWorker(store);
  worker.wake();
  await waitForDelivery(store, first);
  // Its hook queue is still in memory.
  const limited = await worker.manual.redeliver(1, first);
  assert.equal((await limited?.attempt)?.status, 429);
  const next = await enqueueTestDelivery(store, { hookId: 1, url });
  worker.wake([1]);
  const paused = waitForHookQueue(store, 1, (row) => row.parked === 1).then(() => 'paused');
  const sent = waitForDelivery(store, next).then(({ state }) => state);
  assert.equal(await Promise.race([paused, sent]), 'succeeded');
});

forEachEngine('of many redeliveries of a hook four are sent at once, the others in their turn', async (store) => {
  let isOpen = false;
  const waiting: (() => void)[] = [];
  await using receiver = await startReceiver((_, response) => {
    if (isOpen) response.end();
    else waiting.push(() => response.end());
  });
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  const ids: number[] = [];
  for (let count = 0; count < 6; count += 1) ids.push(await enqueueTestDelivery(store, { hookId: 1, url }));
  await using worker = createTestWorker(store);
  const redeliveries = [];
  for (const id of ids) redeliveries.push(await worker.manual.redeliver(1, id));
  await receiver.waitFor(4);
  for (const redelivery of redeliveries.slice(4)) assert.equal(await redelivery?.attempt, undefined);
  assert.equal(receiver.received.length, 4);
  isOpen = true;
  for (const answer of waiting) answer();
  worker.start();
  for (const id of ids) assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
  assert.equal(receiver.received.length, 6);
});

forEachEngine('a redelivery while a worker sends the delivery is logged under a second number', async (store) => {
  const waiting: (() => void)[] = [];
  await using receiver = await startReceiver((_, response) => void waiting.push(() => response.end()));
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  const id = await enqueueTestDelivery(store, { hookId: 1, url });
  await using worker = startTestWorker(store);
  worker.wake();
  await receiver.waitFor(1);
  const redelivery = await worker.manual.redeliver(1, id);
  await receiver.waitFor(2);
  for (const answer of waiting) answer();
  await redelivery?.attempt;
  const { state, attempts } = await waitForDelivery(store, id, (row) => row.attempts === 2);
  assert.deepEqual([state, attempts], ['succeeded', 2]);
  const numbers = (await readAttempts(store, id)).map(({ attempt }) => attempt);
  assert.deepEqual(
    numbers.toSorted((one, other) => one - other),
    [1, 2],
  );
});

forEachEngine('a redelivery of a held or unknown delivery sends nothing', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await store.write(statement('test-disable', 'UPDATE hooks SET disabled_at_ms = 1 WHERE id = 1'));
  const id = await enqueueTestDelivery(store, { hookId: 1, url });
  await using worker = createTestWorker(store);
  assert.equal(await worker.manual.redeliver(1, id + 1), undefined);
  assert.equal(await (await worker.manual.redeliver(1, id))?.attempt, undefined);
  assert.equal(receiver.received.length, 0);
  assert.equal((await readDelivery(store, id)).state, 'pending');
});

forEachEngine('a test that is redelivered is attempted once again, on a disabled hook too', async (store) => {
  await using receiver = await startReceiver((_, response) => void response.writeHead(503).end());
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await insertTestEvent(store, 1, 'test');
  await using worker = createTestWorker(store);
  const nowMs = realWorld.nowMs();
  const id = await enqueueTestDelivery(store, { hookId: 1, url, dueAtMs: nowMs + 30_000 });
  await worker.manual.test(id, nowMs + 10_000);
  for (const attempts of [2, 3]) {
    const redelivery = await worker.manual.redeliver(1, id);
    assert.equal((await redelivery?.attempt)?.status, 503);
    const row = await readDelivery(store, id);
    assert.deepEqual([row.state, row.attempts], ['dead', attempts]);
    await store.write(statement('test-disable', 'UPDATE hooks SET disabled_at_ms = 1 WHERE id = 1'));
  }
});

const failsSql = statement<{ fails: number }>(
  'test-endpoint-fails',
  'SELECT fails FROM endpoint_queue WHERE hook_id = 1',
);

forEachEngine(
  'a failed attempt counts once when its batch is stored, reported as failed and stored again',
  async (store) => {
    await using receiver = await startReceiver((_, response) => {
      response.statusCode = 503;
      response.end();
    });
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    const id = await enqueueTestDelivery(store, { hookId: 1, url });
    let losses = 0;
    const writeAll: Store['writeAll'] = async (statements, options) => {
      const answers = await store.writeAll(statements, options);
      if (losses > 0 || !statements.some(({ statement: one }) => one.name === 'endpoint-count-failure')) return answers;
      losses += 1;
      throw new Error('The connection was lost after the commit');
    };
    await using worker = createTestWorker({ ...store, writeAll });
    for (const fails of [1, 2]) {
      const redelivery = await worker.manual.redeliver(1, id);
      assert.equal((await redelivery?.attempt)?.status, 503);
      assert.equal((await readDelivery(store, id)).attempts, fails);
      assert.deepEqual(await store.read(failsSql), [{ fails }]);
    }
    assert.equal(losses, 1);
  },
);
