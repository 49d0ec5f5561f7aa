import assert from 'node:assert/strict';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import type { Store } from '../../../database/store.ts';
import { realWorld } from '../../../world.ts';
import { renewWorkerLease, takeShards } from '../queue/shard-store.ts';
import { createShardLeases, type ShardLeases } from './shard-leases.ts';

const ALL_SHARDS = Array.from({ length: 256 }, (_, shard) => shard);

/** Two workers whose clock advances only when a test sets it. PostgreSQL only: the embedded store belongs to one process. */
function createTwo(store: Store) {
  const clock = { aheadMs: 0 };
  // Whole milliseconds, since sums with fractions of a monotonic clock are rounded.
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
    // The second worker is killed: it never releases its leases.
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
    // The second worker is killed now.
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
    // The second worker does not run for a minute, and the first takes its shards.
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
    // A worker of an older release registers, but takes no shards.
    const nowMs = world.nowMs();
    await renewWorkerLease(store, { workerId: first.workerId, nowMs, expiresAtMs: nowMs + 15_000 });
    await again.renew(() => true);
    assert.equal(listOf(again).length, 128);
  },
  { only: 'postgres' },
);
