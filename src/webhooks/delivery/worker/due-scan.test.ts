import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStillWorld } from '../../../../test/support/basics/still-world.ts';
import type { Store } from '../../../database/store.ts';
import { createDueScan } from './due-scan.ts';
import { createWakeSignal } from './wake-signal.ts';

const leases = {
  workerId: 'worker-1',
  areHeld: () => true,
  areChanging: () => false,
  hasPeers: () => false,
  epochOf: () => 1,
  renew: () => Promise.resolve(new Set<number>()),
  leave: () => {},
  release: () => Promise.resolve(),
};

/** A scan whose reads take this long. */
function createTimedScan(readMs: number, { hasPeers = false } = {}) {
  const world = createStillWorld();
  const store = {
    read: () => {
      world.moveMs(readMs);
      return Promise.resolve([]);
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
  scan.end(false);
  assert.equal(scan.waitMs(), 190);
  scan.request();
  assert.equal(scan.waitMs(), 30);
  world.moveMs(30);
  assert.equal(scan.waitMs(), 0);
});

test('createDueScan() waits for at most a second after a scan that waited for the database', async () => {
  const { scan } = createTimedScan(20_000);
  await scan.read();
  scan.end(false);
  assert.equal(scan.waitMs(), 1000);
});

test('createDueScan() scans again soon for a second after it found what other processes may have enqueued', async () => {
  const cases = [
    [true, true, 8, 198],
    [true, false, 198, 198],
    [false, true, 198, 198],
  ] as const;
  for (const [hasPeers, hasNews, expectedMs, afterASecondMs] of cases) {
    const { world, scan } = createTimedScan(2, { hasPeers });
    await scan.read();
    scan.end(hasNews);
    assert.equal(scan.waitMs(), expectedMs);
    world.moveMs(1000);
    await scan.read();
    scan.end(false);
    assert.equal(scan.waitMs(), afterASecondMs);
  }
});
