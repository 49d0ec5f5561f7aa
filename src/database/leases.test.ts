import assert from 'node:assert/strict';
import { forEachEngine } from '../../test/support/engines.ts';
import { acquireLease, releaseLease, renewLease } from './leases.ts';

const request = { name: 'trainer', owner: 'one', nowMs: 1_000, durationMs: 500 };

forEachEngine('a lease has one owner until it has run out', async (store) => {
  const lease = await acquireLease(store, request);
  assert.deepEqual(lease, { name: 'trainer', owner: 'one', epoch: 1, expiresAtMs: 1_500 });
  assert.equal(await acquireLease(store, { ...request, owner: 'two', nowMs: 1_499 }), undefined);
  const next = await acquireLease(store, { ...request, owner: 'two', nowMs: 1_500 });
  assert.equal(next?.epoch, 2);
});

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
