import assert from 'node:assert/strict';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { startCutProxy } from '../../../../test/support/network/cut-proxy.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { takeAllShards } from '../../../../test/support/webhooks/deliveries-store.ts';
import { forgetWorkers, releaseShards, renewWorkerLease, takeShards } from './shard-store.ts';

const NOW = 1_000_000;

forEachEngine('shards go to the first worker that finds them free, with a higher epoch each time', async (store) => {
  const first = await takeAllShards(store, 'a', NOW);
  assert.equal(first.size, 256);
  assert.equal((await takeAllShards(store, 'b', NOW + 14_999)).size, 0);
  const seen = await renewWorkerLease(store, { workerId: 'b', nowMs: NOW + 14_999, expiresAtMs: NOW + 29_999 });
  assert.deepEqual(seen.workerIds.toSorted(), ['a', 'b']);
  const taken = await takeAllShards(store, 'b', NOW + 15_000);
  assert.equal(taken.size, 256);
  assert.equal(taken.get(0), first.get(0)! + 1);
  const late = await renewWorkerLease(store, { workerId: 'a', nowMs: NOW + 15_001, expiresAtMs: NOW + 30_001 });
  assert.deepEqual(late.owned, []);
  await releaseShards(
    store,
    'b',
    [...taken].slice(0, 100).map(([shard, epoch]) => ({ shard, epoch })),
  );
  await forgetWorkers(store, 'b', 0);
  assert.equal((await takeAllShards(store, 'a', NOW + 15_002)).size, 100);
});

forEachEngine('a worker that slept keeps the shards that no other worker took', async (store) => {
  const first = await takeAllShards(store, 'a', NOW);
  const { owned } = await renewWorkerLease(store, { workerId: 'a', nowMs: NOW + 60_000, expiresAtMs: NOW + 75_000 });
  assert.deepEqual(new Map(owned.map(({ shard, epoch }) => [shard, epoch])), first);
});

forEachEngine('shards of a worker whose clock was a day ahead are taken once the clock is right', async (store) => {
  const [nowMs, ahead] = [NOW, NOW + 24 * 3_600_000];
  const wrong = { workerId: 'ahead', nowMs: ahead, expiresAtMs: ahead + 15_000 };
  await renewWorkerLease(store, wrong);
  assert.equal((await takeShards(store, wrong, 256)).length, 256);
  const right = { workerId: 'right', nowMs, expiresAtMs: nowMs + 15_000 };
  assert.deepEqual((await renewWorkerLease(store, right)).workerIds, ['right']);
  assert.equal((await takeShards(store, right, 256)).length, 256);
  // A worker whose clock is less than a minute ahead keeps its shards.
  const third = { workerId: 'third', nowMs: nowMs - 50_000, expiresAtMs: nowMs - 35_000 };
  assert.deepEqual(await takeShards(store, third, 256), []);
});

forEachEngine('a worker that was killed counts as a crash for ten minutes, one that ended does not', async (store) => {
  const renew = (workerId: string, nowMs: number) =>
    renewWorkerLease(store, { workerId, nowMs, expiresAtMs: nowMs + 15_000 });
  await renew('killed', NOW);
  await renew('ended', NOW);
  await forgetWorkers(store, 'ended', 0);
  const countCrashes = async (nowMs: number) => (await renew('alive', nowMs)).crashes;
  assert.equal(await countCrashes(NOW + 14_999), 0);
  assert.equal(await countCrashes(NOW + 15_000), 1);
  assert.equal(await countCrashes(NOW + 614_999), 1);
  assert.equal(await countCrashes(NOW + 615_000), 0);
});

forEachEngine(
  'a worker that is stopped during a renewal keeps no shard locked',
  async (store, { place, openAnother }) => {
    const { databaseUrl = '' } = place;
    await takeAllShards(store, 'still', NOW);
    await using proxy = await startCutProxy(databaseUrl);
    const behindProxy = await openAnother({ databaseUrl: proxy.databaseUrl });
    proxy.stallAfter('delivery-shard-renew');
    const lease = { workerId: 'still', nowMs: NOW + 5000, expiresAtMs: NOW + 20_000 };
    const renewal = renewWorkerLease(behindProxy, lease).catch(() => {});
    const renew = (nowMs: number) => renewWorkerLease(store, { workerId: 'other', nowMs, expiresAtMs: nowMs + 15_000 });
    await waitUntil(async () => (await renew(NOW + 16_000)).workerIds.includes('still'));
    assert.equal((await takeAllShards(store, 'other', NOW + 20_000)).size, 256);
    proxy.cut();
    await renewal;
  },
  { only: 'postgres' },
);
