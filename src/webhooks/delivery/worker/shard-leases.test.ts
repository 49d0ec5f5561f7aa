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
import { renewWorkerLease, takeShards } from '../queue/shard-store.ts';
import { createShardLeases, RENEW_AGAIN_MS, RENEW_EVERY_MS, type ShardLeases } from './shard-leases.ts';

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
      // The next renewal in its turn never comes.
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
      // Renewals follow each other quickly.
      sleep: (ms: number, signal?: AbortSignal) => realWorld.sleep(ms >= RENEW_AGAIN_MS ? 10 : ms, signal),
    };
    const { promise: isRefused, resolve: refuse } = Promise.withResolvers<void>();
    let isAway = false;
    let refusals = 0;
    const writeAll: Store['writeAll'] = async (statements, options) => {
      if (!isAway || statements[0]?.statement.name !== 'delivery-worker-register')
        return await store.writeAll(statements, options);
      refusals += 1;
      // What followed from the first has been done by then.
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
  // Whole milliseconds: sums with the fractions of a monotonic clock are rounded.
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

const ALL_SHARDS = Array.from({ length: 256 }, (_, shard) => shard);

/** Two workers whose clock stands still until a test moves it. The embedded store belongs to one process. */
function createTwo(store: Store) {
  const clock = { aheadMs: 0 };
  // Whole milliseconds: sums with the fractions of a monotonic clock are rounded.
  const startMs = realWorld.nowMs();
  const world = {
    ...realWorld,
    nowMs: () => startMs + clock.aheadMs,
    monotonicMs: () => startMs + clock.aheadMs,
  };
  const create = () => createShardLeases(store, world);
  return { clock, world, create, first: create(), joining: create() };
}

const listOf = (leases: ShardLeases) => ALL_SHARDS.filter((shard) => leases.epochOf(shard) !== undefined);

forEachEngine(
  'busy shards are given to a worker that joins once it is settled and they are idle',
  async (store) => {
    const { clock, first, joining } = createTwo(store);
    const isBusy = () => true;
    await first.renew(isBusy);
    assert.deepEqual([listOf(first).length, first.areChanging()], [256, false]);
    await joining.renew(isBusy);
    await first.renew(isBusy);
    assert.deepEqual([listOf(first).length, first.areChanging()], [256, false]);
    for (const aheadMs of [5000, 10_000, 15_000]) {
      clock.aheadMs = aheadMs;
      await joining.renew(isBusy);
      assert.deepEqual([listOf(joining).length, joining.areChanging()], [0, true]);
      await first.renew(isBusy);
    }
    const left = ALL_SHARDS.filter((shard) => first.epochOf(shard) === undefined);
    assert.deepEqual([left.length, first.areChanging()], [128, true]);
    await joining.renew(isBusy);
    assert.deepEqual(listOf(joining), []);
    await first.renew(() => false);
    await joining.renew(() => false);
    assert.deepEqual(listOf(joining), left);
    assert.deepEqual([first.areChanging(), joining.areChanging()], [false, false]);
    assert.deepEqual([first.hasPeers(), joining.hasPeers()], [true, true]);
  },
  { only: 'postgres' },
);

forEachEngine(
  'idle shards are given to a worker at once when it joins',
  async (store) => {
    const { first, joining } = createTwo(store);
    const isBusy = (shard: number) => shard < 192;
    await first.renew(isBusy);
    await joining.renew(isBusy);
    await first.renew(isBusy);
    await joining.renew(isBusy);
    assert.deepEqual(
      listOf(joining),
      ALL_SHARDS.filter((shard) => !isBusy(shard)),
    );
  },
  { only: 'postgres' },
);

forEachEngine(
  'a worker gets busy shards later when another one was killed',
  async (store) => {
    const { clock, create, first, joining } = createTwo(store);
    await first.renew(() => true);
    // It is not released.
    await joining.renew(() => true);
    clock.aheadMs = 16_000;
    const again = create();
    const renewUntil = async (untilMs: number) => {
      for (; clock.aheadMs < untilMs; clock.aheadMs += 5000) {
        await first.renew(() => true);
        await again.renew(() => true);
      }
    };
    await renewUntil(90_000);
    assert.equal(listOf(first).length, 256);
    await renewUntil(100_000);
    assert.equal(listOf(first).length, 128);
  },
  { only: 'postgres' },
);

forEachEngine(
  'shards that were to leave stay when the worker that joined is gone',
  async (store) => {
    const { clock, first, joining } = createTwo(store);
    for (clock.aheadMs = 0; clock.aheadMs <= 20_000; clock.aheadMs += 5000) {
      await first.renew(() => true);
      await joining.renew(() => true);
    }
    assert.equal(listOf(first).length, 128);
    await joining.release();
    await first.renew(() => true);
    assert.equal(listOf(first).length, 256);
  },
  { only: 'postgres' },
);

forEachEngine(
  'shards of a killed worker go to a settled one, not to one that has just started',
  async (store) => {
    const { clock, create, first, joining } = createTwo(store);
    await first.renew(() => false);
    await joining.renew(() => false);
    await first.renew(() => false);
    await joining.renew(() => false);
    assert.equal(listOf(joining).length, 128);
    // It is killed now.
    clock.aheadMs = 10_000;
    await first.renew(() => true);
    const again = create();
    clock.aheadMs = 16_000;
    await again.renew(() => true);
    assert.equal(listOf(again).length, 0);
    await first.renew(() => true);
    assert.equal(listOf(first).length, 256);
  },
  { only: 'postgres' },
);

forEachEngine(
  'a worker whose shards were taken tells which, and looks for shards often until it has its part',
  async (store) => {
    const { clock, first, joining } = createTwo(store);
    assert.deepEqual(await first.renew(() => false), new Set());
    await joining.renew(() => false);
    assert.deepEqual(await first.renew(() => false), new Set(), 'what it gives back is not lost');
    await joining.renew(() => false);
    const own = listOf(joining);
    assert.equal(own.length, 128);
    // It does not run for a minute, and the first takes its place.
    clock.aheadMs = 60_000;
    await first.renew(() => false);
    assert.equal(listOf(first).length, 256);
    assert.deepEqual(await joining.renew(() => false), new Set(own));
    assert.deepEqual([listOf(joining).length, joining.areChanging()], [0, true]);
    assert.deepEqual(await joining.renew(() => false), new Set());
    await first.renew(() => false);
    await joining.renew(() => false);
    assert.deepEqual([listOf(joining).length, joining.areChanging()], [128, false]);
  },
  { only: 'postgres' },
);

forEachEngine(
  'shards that another worker had for a while count as lost, though they are owned again',
  async (store) => {
    const { clock, world, first, joining } = createTwo(store);
    await first.renew(() => false);
    clock.aheadMs = 60_000;
    await takeShards(store, { workerId: joining.workerId, nowMs: world.nowMs(), expiresAtMs: world.nowMs() + 1 }, 100);
    clock.aheadMs = 61_000;
    assert.deepEqual(await first.renew(() => false), new Set(ALL_SHARDS.slice(0, 100)));
    assert.equal(listOf(first).length, 256);
  },
  { only: 'postgres' },
);

forEachEngine(
  'a worker that has just started takes shards that no settled worker takes',
  async (store) => {
    const { clock, world, create, first, joining } = createTwo(store);
    await first.renew(() => false);
    await joining.renew(() => false);
    await first.renew(() => false);
    await joining.renew(() => false);
    clock.aheadMs = 10_000;
    await first.renew(() => true);
    const again = create();
    await again.renew(() => true);
    clock.aheadMs = 24_000;
    await again.renew(() => true);
    assert.equal(listOf(again).length, 0);
    clock.aheadMs = 25_500;
    // As a worker of an older release does, which does not take them.
    const nowMs = world.nowMs();
    await renewWorkerLease(store, { workerId: first.workerId, nowMs, expiresAtMs: nowMs + 15_000 });
    await again.renew(() => true);
    assert.equal(listOf(again).length, 128);
  },
  { only: 'postgres' },
);
