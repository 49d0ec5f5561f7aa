import assert from 'node:assert/strict';
import { enqueueTestDelivery, insertTestHook, waitForDelivery } from '../../../../test/support/deliveries-store.ts';
import { startTestWorker } from '../../../../test/support/delivery-worker.ts';
import { forEachEngine } from '../../../../test/support/engines.ts';
import { startReceiver } from '../../../../test/support/receiver.ts';
import type { Store } from '../../../database/store.ts';
import { realWorld } from '../../../world.ts';
import { takeShards } from '../queue/shard-store.ts';
import { createShardLeases, RENEW_EVERY_MS, type ShardLeases } from './shard-leases.ts';

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
      if (!statements.some(({ statement: one }) => one.name === 'delivery_worker_register')) return answers;
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

forEachEngine('the owner of shards stops three seconds before another worker can take them', async (store) => {
  const clock = { aheadMs: 0 };
  const [startMs, startMonotonicMs] = [realWorld.nowMs(), realWorld.monotonicMs()];
  const world = {
    ...realWorld,
    nowMs: () => startMs + clock.aheadMs,
    monotonicMs: () => startMonotonicMs + clock.aheadMs,
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

forEachEngine(
  'busy shards are shared with a worker that joins, each once nothing of it is under way',
  async (store) => {
    // The embedded store belongs to one process.
    if (store.engine === 'sqlite') return;
    const [first, joining] = [createShardLeases(store, realWorld), createShardLeases(store, realWorld)];
    const listOf = (leases: ShardLeases) => ALL_SHARDS.filter((shard) => leases.epochOf(shard) !== undefined);
    const isBusy = (shard: number) => shard < 64;
    await first.renew(isBusy);
    assert.deepEqual([listOf(first).length, first.areChanging()], [256, false]);
    await joining.renew(isBusy);
    assert.deepEqual([listOf(joining).length, joining.areChanging()], [0, true]);
    await first.renew(isBusy);
    const left = ALL_SHARDS.filter((shard) => first.epochOf(shard) === undefined);
    assert.deepEqual([left.length, first.areChanging()], [128, true]);
    await joining.renew(isBusy);
    assert.deepEqual(
      listOf(joining),
      left.filter((shard) => !isBusy(shard)),
    );
    // That none of 64 is among 128 of 256 chosen at random never happens.
    assert.ok(left.some(isBusy));
    await first.renew(() => false);
    await joining.renew(() => false);
    assert.deepEqual(listOf(joining), left);
    assert.deepEqual([first.areChanging(), joining.areChanging()], [false, false]);
    assert.deepEqual([first.hasPeers(), joining.hasPeers()], [true, true]);
  },
);

forEachEngine('shards that were to leave stay when the worker that joined is gone', async (store) => {
  // The embedded store belongs to one process.
  if (store.engine === 'sqlite') return;
  const [first, joining] = [createShardLeases(store, realWorld), createShardLeases(store, realWorld)];
  const count = () => ALL_SHARDS.filter((shard) => first.epochOf(shard) !== undefined).length;
  await first.renew(() => true);
  await joining.renew(() => true);
  await first.renew(() => true);
  assert.equal(count(), 128);
  await joining.release();
  await first.renew(() => true);
  assert.equal(count(), 256);
});
