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
  type TestWorker,
} from '../../../../test/support/webhooks/delivery-worker.ts';
import { type Store, statement } from '../../../database/store.ts';
import { createLog } from '../../../telemetry/log.ts';
import { realWorld } from '../../../world.ts';
import { MIN_FAILURES } from '../schedule/breaker.ts';

type Request = (worker: TestWorker, id: number, nowMs?: number) => Promise<unknown>;
const requests: [title: string, request: Request][] = [
  ['test', (worker, id, nowMs = realWorld.nowMs()) => worker.manual.test(id, nowMs + 10_000)],
  ['redelivery', async (worker, id) => await (await worker.manual.redeliver(1, id))?.attempt],
];
for (const [title, request] of requests)
  forEachEngine(`a ${title} for which a slow database leaves no time is no failure of its receiver`, async (store) => {
    await using receiver = await startReceiver();
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    let lateMs = 0;
    const world = { ...realWorld, nowMs: () => realWorld.nowMs() + lateMs };
    const makeIds: Store['makeIds'] = async (count) => {
      lateMs += 15_000;
      return await store.makeIds(count);
    };
    await using requested = createTestWorker({ ...store, makeIds }, undefined, world);
    const ids: number[] = [];
    for (let count = 0; count < MIN_FAILURES; count += 1) {
      const id = await enqueueTestDelivery(store, { hookId: 1, url, dueAtMs: world.nowMs() + 30_000 });
      assert.equal(await request(requested, id, world.nowMs()), undefined);
      assert.deepEqual(await readAttempts(store, id), []);
      ids.push(id);
    }
    assert.equal(receiver.received.length, 0);
    await using _worker = startTestWorker(store, undefined, world);
    for (const id of ids) assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
  });

for (const [title, request] of requests)
  forEachEngine(
    `a ${title} of a test event at a disabled webhook is not sent later when no time is left`,
    async (store) => {
      await using receiver = await startReceiver();
      const { url } = receiver;
      await insertTestHook(store, { id: 1, url });
      await insertTestEvent(store, 1, 'test');
      await store.write(statement('test-disable', 'UPDATE hooks SET disabled_at_ms = 1 WHERE id = 1'));
      let lateMs = 0;
      const world = { ...realWorld, nowMs: () => realWorld.nowMs() + lateMs };
      const makeIds: Store['makeIds'] = async (count) => {
        lateMs += 45_000;
        return await store.makeIds(count);
      };
      await using worker = createTestWorker({ ...store, makeIds }, undefined, world);
      const id = await enqueueTestDelivery(store, { hookId: 1, url, dueAtMs: world.nowMs() + 30_000 });
      assert.equal(await request(worker, id, world.nowMs()), undefined);
      assert.equal((await readDelivery(store, id)).state, 'expired');
      assert.equal(receiver.received.length, 0);
    },
  );

for (const [title, request] of requests)
  forEachEngine(`a stop does not wait for a database that is away to store a ${title}`, async (store) => {
    await using receiver = await startReceiver();
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    const id = await enqueueTestDelivery(store, { hookId: 1, url, dueAtMs: realWorld.nowMs() + 30_000 });
    const writeAll: Store['writeAll'] = async (statements, options) => {
      const isResult = statements.some(({ statement: one }) => one.name.startsWith('delivery-settle'));
      if (isResult) throw new Error('The database is away');
      return await store.writeAll(statements, options);
    };
    const worker = createTestWorker({ ...store, writeAll }, undefined, undefined, createLog('silent'));
    const requested = request(worker, id);
    await receiver.waitFor(1);
    await worker.stop();
    await requested;
    const { state, attempts } = await readDelivery(store, id);
    assert.deepEqual([state, attempts], ['pending', 0], 'the workers send it');
  });
