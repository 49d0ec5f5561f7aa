import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStillWorld } from '../../../../test/support/still-world.ts';
import type { Store } from '../../../database/store.ts';
import { createDueScan } from './due-scan.ts';
import { createWakeSignal } from './wake-signal.ts';

const leases = {
  workerId: 'worker-1',
  areHeld: () => true,
  areChanging: () => false,
  hasPeers: () => false,
  epochOf: () => 1,
  renew: () => Promise.resolve(),
  release: () => Promise.resolve(),
};

/** A scan whose reads take this long, and find these rows. */
function createTimedScan(readMs: number, { rows = [] as object[], hasPeers = false } = {}) {
  const world = createStillWorld();
  const store = {
    read: () => {
      world.moveMs(readMs);
      return Promise.resolve(rows);
    },
  } as unknown as Store;
  const scan = createDueScan({
    store,
    world,
    leases: { ...leases, hasPeers: () => hasPeers },
    signal: createWakeSignal(),
  });
  return { world, scan };
}

test('createDueScan() scans at once when it is asked to, and else a few times a second', async () => {
  const { world, scan } = createTimedScan(10);
  assert.equal(scan.waitMs(), 0);
  await scan.read();
  scan.end();
  assert.equal(scan.waitMs(), 190);
  scan.request();
  assert.equal(scan.waitMs(), 30);
  world.moveMs(30);
  assert.equal(scan.waitMs(), 0);
});

test('createDueScan() rests for a second at most after a scan that waited for the database', async () => {
  const { scan } = createTimedScan(20_000);
  await scan.read();
  scan.end();
  assert.equal(scan.waitMs(), 1000);
});

test('createDueScan() scans again soon while it finds what other processes may have enqueued', async () => {
  const cases = [
    [true, [{ shard: 1 }], 20],
    [true, [], 195],
    [false, [{ shard: 1 }], 195],
  ] as const;
  for (const [hasPeers, rows, expectedMs] of cases) {
    const { scan } = createTimedScan(5, { hasPeers, rows: [...rows] });
    await scan.read();
    scan.end();
    assert.equal(scan.waitMs(), expectedMs);
  }
});
