/** A hook queue is held, put to sleep and woken while others change it at the same time. */
import assert from 'node:assert/strict';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  readDelivery,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { startTestWorker, waitForHookQueue } from '../../../../test/support/webhooks/delivery-worker.ts';
import { type Store, statement } from '../../../database/store.ts';
import { realWorld } from '../../../world.ts';
import { NEVER_MS, releaseHookQueueStatement } from '../queue/delivery-store.ts';
import { RENEW_EVERY_MS } from '../worker/shard-leases.ts';

forEachEngine('a hook that is enabled while a worker is about to hold it is not held', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await store.write(statement('test-disable', 'UPDATE hooks SET disabled_at_ms = 1 WHERE id = 1'));
  const isHolding = Promise.withResolvers<void>();
  const isEnabled = Promise.withResolvers<void>();
  const hesitant: Store = {
    ...store,
    writeAll: async (steps) => {
      if (steps.some((step) => step.statement.name.startsWith('endpoint-hold'))) {
        isHolding.resolve();
        await isEnabled.promise;
      }
      return await store.writeAll(steps);
    },
  };
  await using worker = startTestWorker(hesitant);
  const id = await enqueueTestDelivery(store, { hookId: 1, url });
  worker.wake();
  await isHolding.promise;
  await store.writeAll([
    releaseHookQueueStatement(1, realWorld.nowMs()),
    { statement: statement('test-enable', 'UPDATE hooks SET disabled_at_ms = NULL WHERE id = 1'), parameters: [] },
  ]);
  isEnabled.resolve();
  const held = waitForHookQueue(store, 1, (row) => row.held_since_ms !== null).then(() => 'held');
  const sent = waitForDelivery(store, id).then(({ state }) => state);
  assert.equal(await Promise.race([held, sent]), 'succeeded');
});

forEachEngine('a hook that another process disabled is held, and one that it deleted is cancelled', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await store.write(statement('test-disable', 'UPDATE hooks SET disabled_at_ms = 1 WHERE id = 1'));
  await enqueueTestDelivery(store, { hookId: 1, url });
  await enqueueTestDelivery(store, { hookId: 2, url });
  await using worker = startTestWorker(store);
  worker.wake();
  const countsSql = statement<{ held: number; canceled: number }>(
    'test-held-canceled',
    'SELECT COUNT(held_since_ms) AS held, COUNT(canceled_at_ms) AS canceled FROM endpoint_queue',
  );
  await waitUntil(async () => {
    const [row] = await store.read(countsSql);
    return row?.held === 1 && row.canceled === 1;
  });
  assert.equal(receiver.received.length, 0);
});

forEachEngine('a delivery that is enqueued while its queue is read is found without another scan', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  const first = await enqueueTestDelivery(store, { hookId: 1, url });
  let second: number | undefined;
  let looks = 0;
  const read: Store['read'] = async (asked, parameters) => {
    if (asked.name === 'endpoint-due') looks += 1;
    // A later scan would find the delivery too.
    return asked.name === 'endpoint-due' && second !== undefined ? [] : await store.read(asked, parameters);
  };
  const readAll: Store['readAll'] = async (asked) => {
    const found = await store.readAll(asked);
    const isOfWaiting = asked.some(({ statement: { name } }) => name.startsWith('delivery-waiting'));
    if (isOfWaiting && found.flat().length > 0 && second === undefined) {
      second = await enqueueTestDelivery(store, { hookId: 1, url });
      worker.wake([1]);
    }
    return found;
  };
  await using worker = startTestWorker({ ...store, read, readAll });
  worker.wake();
  await waitForDelivery(store, first);
  assert.equal((await waitForDelivery(store, await waitUntil(() => second))).state, 'succeeded');
  assert.ok(looks > 0);
});

forEachEngine('a delivery whose result is stored while its hook queue is read is not sent again', async (store) => {
  const isAnswered = Promise.withResolvers<void>();
  await using receiver = await startReceiver((_, response) => void isAnswered.promise.then(() => response.end('ok')));
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  const first = await enqueueTestDelivery(store, { hookId: 1, url });
  let second: number | undefined;
  const readAll: Store['readAll'] = async (asked) => {
    const found = await store.readAll(asked);
    const ids = found.flat().map((row) => (row as { id?: number }).id);
    if (second !== undefined && ids.includes(first) && ids.includes(second)) {
      isAnswered.resolve();
      assert.equal((await waitForDelivery(store, first)).state, 'succeeded');
      // The worker gets the answer of its commit before that of this read.
      await readDelivery(store, first);
    }
    return found;
  };
  await using worker = startTestWorker({ ...store, readAll });
  worker.wake();
  await receiver.waitFor(1);
  second = await enqueueTestDelivery(store, { hookId: 1, url });
  worker.wake([1]);
  assert.equal((await waitForDelivery(store, second)).state, 'succeeded');
  assert.equal(receiver.received.length, 2);
});

forEachEngine('a hook queue with nothing left is put to sleep, and wakes for later enqueues', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await using worker = startTestWorker(store);
  for (let round = 0; round < 2; round += 1) {
    const ids: number[] = [];
    for (let count = 0; count < 2; count += 1) {
      ids.push(await enqueueTestDelivery(store, { hookId: 1, url }));
      worker.wake([1]);
      await receiver.waitFor(2 * round + ids.length);
    }
    for (const id of ids) assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
    await waitForHookQueue(store, 1, (row) => row.next_at_ms === NEVER_MS);
  }
});

forEachEngine('a worker that is busy all the time sees what another process has enqueued', async (store) => {
  const answers: (() => void)[] = [];
  await using slow = await startReceiver((_, response) => void answers.push(() => response.end('ok')));
  await using receiver = await startReceiver();
  await insertTestHook(store, { id: 1, url: slow.url });
  await insertTestHook(store, { id: 2, url: receiver.url });
  // Leases are renewed once: a renewal scans too.
  const world = {
    ...realWorld,
    sleep: (ms: number, signal?: AbortSignal) => realWorld.sleep(ms === RENEW_EVERY_MS ? 2 ** 30 : ms, signal),
  };
  await using worker = startTestWorker(store, undefined, world);
  await enqueueTestDelivery(store, { hookId: 1, url: slow.url });
  worker.wake();
  await slow.waitFor(1);
  // Its hook queue is in memory, so a wake requests no scan.
  const waking = setInterval(() => worker.wake([1]), 1);
  try {
    const id = await enqueueTestDelivery(store, { hookId: 2, url: receiver.url });
    assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
  } finally {
    clearInterval(waking);
    for (const answer of answers) answer();
  }
});

forEachEngine('a new delivery does not wait for the many retries of its hook that are due', async (store) => {
  const answers: (() => void)[] = [];
  let isHolding = true;
  await using receiver = await startReceiver((_, response) => {
    if (isHolding) answers.push(() => response.end('ok'));
    else response.end('ok');
  });
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  for (let count = 0; count < 100; count += 1) await enqueueTestDelivery(store, { hookId: 1, url });
  await store.write(statement('test-retries', 'UPDATE deliveries SET lane = 1, attempts = 1'));
  await using worker = startTestWorker(store);
  worker.wake();
  await receiver.waitFor(4);
  const body = Buffer.from('{"new":true}');
  await enqueueTestDelivery(store, { hookId: 1, url, body });
  worker.wake([1]);
  const hasCome = () => receiver.received.some((request) => request.body.equals(body));
  for (let sent = 4; !hasCome() && sent < 40; sent += 1) {
    answers.shift()?.();
    await receiver.waitFor(sent + 1);
  }
  const { length } = receiver.received;
  isHolding = false;
  for (const answer of answers) answer();
  assert.ok(length < 40, `${length} requests without the new delivery`);
});

forEachEngine('a retry does not wait for another attempt of its hook that takes long', async (store) => {
  const answers: (() => void)[] = [];
  await using receiver = await startReceiver((_, response, index) => {
    if (index === 0) answers.push(() => response.end('ok'));
    else response.writeHead(index === 1 ? 500 : 200).end();
  });
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await using worker = startTestWorker(store);
  const slow = await enqueueTestDelivery(store, { hookId: 1, url });
  worker.wake([1]);
  await receiver.waitFor(1);
  const failing = await enqueueTestDelivery(store, { hookId: 1, url });
  worker.wake([1]);
  await waitForDelivery(store, failing, ({ attempts }) => attempts === 1);
  // The retry becomes due, which only its row shows.
  await store.write(statement('test-due', 'UPDATE deliveries SET due_at_ms = 0 WHERE id = $1'), [failing]);
  assert.equal((await waitForDelivery(store, failing)).state, 'succeeded');
  assert.equal((await readDelivery(store, slow)).attempts, 0, 'it is still under way');
  for (const answer of answers) answer();
});
