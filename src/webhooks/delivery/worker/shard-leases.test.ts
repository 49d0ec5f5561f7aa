import assert from 'node:assert/strict';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { startTestWorker } from '../../../../test/support/webhooks/delivery-worker.ts';
import type { Store } from '../../../database/store.ts';
import { createLog } from '../../../telemetry/log.ts';
import { realWorld } from '../../../world.ts';
import { takeShards } from '../queue/shard-store.ts';
import { createShardLeases, RENEW_AGAIN_MS, RENEW_EVERY_MS } from './shard-leases.ts';

const LOST_LEASES: readonly (readonly [title: string, lose: (world: { aheadMs: number }) => void])[] = [
  [
    'failed',
    () => {
      throw new Error('The database is away');
    },
  ],
  [
    'took longer than a lease lasts',
    (world) => {
      world.aheadMs += 20_000;
    },
  ],
];
for (const [title, lose] of LOST_LEASES)
  forEachEngine(`a renewal of leases that ${title} is made again soon`, async (store) => {
    await using receiver = await startReceiver();
    await insertTestHook(store, { id: 1, url: receiver.url });
    const clock = { aheadMs: 0 };
    const world = {
      ...realWorld,
      monotonicMs: () => realWorld.monotonicMs() + clock.aheadMs,
      // The next regular renewal never comes.
      sleep: (ms: number, signal?: AbortSignal) => realWorld.sleep(ms === RENEW_EVERY_MS ? 2 ** 30 : ms, signal),
    };
    let renewals = 0;
    const writeAll: Store['writeAll'] = async (statements) => {
      const answers = await store.writeAll(statements);
      if (!statements.some(({ statement: one }) => one.name === 'delivery-worker-register')) return answers;
      renewals += 1;
      if (renewals === 1) lose(clock);
      return answers;
    };
    await using worker = startTestWorker({ ...store, writeAll }, undefined, world);
    const id = await enqueueTestDelivery(store, { hookId: 1, url: receiver.url });
    worker.wake();
    assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
    assert.equal(renewals, 2);
  });

forEachEngine(
  'deliveries of a hook go on after its leases had lapsed, beside one that is still being sent',
  async (store) => {
    const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
    await using receiver = await startReceiver((_, response) => void mayAnswer.then(() => response.end('ok')));
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    const clock = { aheadMs: 0 };
    const world = {
      ...realWorld,
      monotonicMs: () => realWorld.monotonicMs() + clock.aheadMs,
      // Shortens the waits between renewals.
      sleep: (ms: number, signal?: AbortSignal) => realWorld.sleep(ms >= RENEW_AGAIN_MS ? 10 : ms, signal),
    };
    const { promise: isRefused, resolve: refuse } = Promise.withResolvers<void>();
    let isAway = false;
    let refusals = 0;
    const writeAll: Store['writeAll'] = async (statements, options) => {
      if (!isAway || statements[0]?.statement.name !== 'delivery-worker-register')
        return await store.writeAll(statements, options);
      refusals += 1;
      // By the second refusal, the effects of the first are complete.
      if (refusals === 2) refuse();
      throw new Error('The database is away');
    };
    const lines: string[] = [];
    const { promise: hasLapsed, resolve: reportLapse } = Promise.withResolvers<void>();
    const write = (line: string): void => {
      const { msg } = JSON.parse(line) as { msg: string };
      lines.push(msg);
      if (msg.startsWith('The leases of shards lapsed')) reportLapse();
    };
    const log = createLog('warn', { write });
    await using worker = startTestWorker({ ...store, writeAll }, undefined, world, log);
    // Also when the test fails, since the worker waits for its attempts when it stops.
    using _end = { [Symbol.dispose]: answer };
    await enqueueTestDelivery(store, { hookId: 1, url });
    worker.wake();
    await receiver.waitFor(1);
    isAway = true;
    clock.aheadMs += 13_000;
    await Promise.all([isRefused, hasLapsed]);
    isAway = false;
    await enqueueTestDelivery(store, { hookId: 1, url });
    worker.wake();
    await receiver.waitFor(2);
    const ofLeases = lines.filter((line) => line.startsWith('The leases'));
    assert.deepEqual(ofLeases, [
      'The leases of shards lapsed before they were renewed; no delivery is sent until they are',
      'The leases of shards are renewed; deliveries go on',
    ]);
  },
);

forEachEngine('the owner of shards stops three seconds before another worker can take them', async (store) => {
  const clock = { aheadMs: 0 };
  // Whole milliseconds, since sums with fractions of a monotonic clock are rounded.
  const startMs = realWorld.nowMs();
  const world = {
    ...realWorld,
    nowMs: () => startMs + clock.aheadMs,
    monotonicMs: () => startMs + clock.aheadMs,
  };
  const leases = createShardLeases(store, world);
  await leases.renew(() => false);
  const other = () =>
    takeShards(store, { workerId: 'other', nowMs: world.nowMs(), expiresAtMs: startMs + 60_000 }, 256);
  clock.aheadMs = 11_999;
  assert.equal(leases.epochOf(7), 1);
  clock.aheadMs = 12_000;
  assert.equal(leases.epochOf(7), undefined);
  clock.aheadMs = 14_999;
  assert.deepEqual(await other(), []);
  clock.aheadMs = 15_000;
  assert.equal((await other()).length, 256);
});
