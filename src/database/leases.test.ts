import assert from 'node:assert/strict';
import { createStillWorld } from '../../test/support/basics/still-world.ts';
import { waitUntil } from '../../test/support/basics/wait-until.ts';
import { forEachEngine } from '../../test/support/store/engines.ts';
import { realWorld } from '../world.ts';
import { acquireLease, releaseLease, renewLease, runUnderLease } from './leases.ts';
import { type Store, statement } from './store.ts';

const endOfLeaseSql = statement<{ expires_at_ms: number }>(
  'test-end-of-lease',
  'SELECT expires_at_ms FROM leases WHERE name = $1',
);
const request = { name: 'trainer', owner: 'one', nowMs: 1_000, durationMs: 500 };

forEachEngine('a lease has one owner until it has run out', async (store) => {
  const lease = await acquireLease(store, request);
  assert.deepEqual(lease, { name: 'trainer', owner: 'one', epoch: 1, expiresAtMs: 1_500 });
  assert.equal(await acquireLease(store, { ...request, owner: 'two', nowMs: 1_499 }), undefined);
  const next = await acquireLease(store, { ...request, owner: 'two', nowMs: 1_500 });
  assert.equal(next?.epoch, 2);
});

forEachEngine(
  'a lease that was made while the clock was a day ahead does not outlast its correction',
  async (store) => {
    const day = 24 * 3_600_000;
    assert.ok(await acquireLease(store, { ...request, nowMs: request.nowMs + day }));
    const next = await acquireLease(store, { ...request, owner: 'two' });
    assert.equal(next?.epoch, 2);
    assert.equal(await acquireLease(store, { ...request, owner: 'three', nowMs: request.nowMs - 59_000 }), undefined);
  },
);

forEachEngine('of many who ask at once one gets the lease', async (store, { openAnother }) => {
  const other = await openAnother();
  const asked = Array.from({ length: 20 }, (_, index) =>
    acquireLease(index % 2 ? store : other, { ...request, owner: `worker ${index}` }),
  );
  assert.equal((await Promise.all(asked)).filter((lease) => lease !== undefined).length, 1);
});

forEachEngine('renewing moves the end and keeps the epoch', async (store) => {
  const lease = await acquireLease(store, request);
  assert.ok(lease);
  const renewed = await renewLease(store, lease, 2_000);
  assert.deepEqual(renewed, { ...lease, expiresAtMs: 2_000 });
  assert.equal(await acquireLease(store, { ...request, owner: 'two', nowMs: 1_999 }), undefined);
});

forEachEngine('an owner who slept through the end cannot renew or release what another has', async (store) => {
  const old = await acquireLease(store, request);
  assert.ok(old);
  const current = await acquireLease(store, { ...request, owner: 'two', nowMs: 3_000 });
  assert.equal(current?.epoch, 2);
  assert.equal(await renewLease(store, old, 9_000), undefined);
  await releaseLease(store, old);
  assert.equal(await acquireLease(store, { ...request, owner: 'three', nowMs: 3_100 }), undefined);
});

forEachEngine('a released lease is free at once, and its epoch goes on counting', async (store) => {
  const lease = await acquireLease(store, request);
  assert.ok(lease);
  await releaseLease(store, lease);
  assert.equal(await renewLease(store, lease, 9_000), undefined);
  assert.equal((await acquireLease(store, request))?.epoch, 2);
});

forEachEngine(
  'work under a lease is done by one, who keeps the lease as long as it takes',
  async (store, { openAnother }) => {
    const other = await openAnother();
    // Renewed every 10 ms. The clock moves only after a renewal was stored, so that a slow machine ends no lease.
    const order = { name: 'sweep', durationMs: 30 };
    const world = createStillWorld();
    const started = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const first = runUnderLease({ store, world }, order, async (lost) => {
      started.resolve();
      await ended.promise;
      assert.equal(lost.aborted, false);
    });
    await started.promise;
    for (let step = 1; step <= 5; step += 1) {
      world.moveMs(20);
      const renewedMs = world.nowMs() + order.durationMs;
      await waitUntil(async () => (await store.read(endOfLeaseSql, [order.name]))[0]?.expires_at_ms === renewedMs);
      await runUnderLease({ store: other, world }, order, () => assert.fail('two did the work at once'));
    }
    ended.resolve();
    await first;
    let isDone = false;
    await runUnderLease({ store: other, world }, order, async () => {
      isDone = true;
    });
    assert.ok(isDone, 'the end released it');
  },
);

forEachEngine(
  'work is notified that its lease was lost, and a lease is released when the work fails',
  async (store) => {
    const dependencies = { store, world: realWorld };
    await runUnderLease(dependencies, { name: 'sweep', durationMs: 30 }, async (lost) => {
      const thief = { name: 'sweep', owner: 'thief', nowMs: realWorld.nowMs() + 60_000, durationMs: 1 };
      assert.ok(await acquireLease(store, thief));
      // Only the signal ends it.
      await assert.rejects(realWorld.sleep(60_000, lost), { code: 'ABORT_ERR' });
    });
    await assert.rejects(
      runUnderLease(dependencies, { name: 'other', durationMs: 60_000 }, () => Promise.reject(new Error('failed'))),
      /failed/,
    );
    assert.ok(await acquireLease(store, { name: 'other', owner: 'next', nowMs: realWorld.nowMs(), durationMs: 1 }));
  },
);

forEachEngine('a renewal that takes longer than the time between two shortens no lease', async (store) => {
  const world = createStillWorld();
  const held = Promise.withResolvers<void>();
  let renewals = 0;
  // The first renewal is stored late, as after a slow commit.
  const slow: Store = {
    ...store,
    write: async (written, parameters) => {
      if (written.name === 'lease-renew' && renewals++ === 0) await held.promise;
      return await store.write(written, parameters);
    },
  };
  await runUnderLease({ store: slow, world }, { name: 'sweep', durationMs: 30 }, async (lost) => {
    await waitUntil(() => renewals === 1);
    world.moveMs(20);
    // Time passes for two more renewals, which must wait for the first.
    await realWorld.sleep(25);
    assert.equal(renewals, 1);
    held.resolve();
    await waitUntil(async () => (await store.read(endOfLeaseSql, ['sweep']))[0]?.expires_at_ms === world.nowMs() + 30);
    assert.equal(lost.aborted, false);
  });
});
