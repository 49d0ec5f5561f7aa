/** However many owners wait for one origin, all get their turns, and the cost of each delivery that ends there is constant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { job, takeAll } from '../../../../test/support/webhooks/scheduled-jobs.ts';
import { CAPS } from './concurrency-limits.ts';
import type { OriginLimits } from './origin-breakers.ts';
import { createScheduler } from './scheduler.ts';
import type { Job } from './turn-tree.ts';

/** How often the limits of an origin are read for each delivery that ends there, while this number of owners wait for it. */
function countLooks(owners: number): number {
  let looks = 0;
  const limitsOfOrigin = (): OriginLimits => {
    looks += 1;
    return { total: 16, ofOneOwner: 16 };
  };
  const scheduler = createScheduler<Job>({ caps: CAPS, limitsOfOrigin });
  for (let owner = 0; owner < owners; owner++)
    for (let count = 0; count < 3; count++) scheduler.add(job(owner, { origin: 'http://shared' }));
  const sending = takeAll(scheduler.next);
  // The first pick skips all nodes that have to wait.
  looks = 0;
  const ends = 100;
  for (let end = 0; end < ends; end++) {
    scheduler.finish(sending.shift()!);
    sending.push(...takeAll(scheduler.next));
  }
  assert.equal(sending.length, 16);
  return looks / ends;
}

test('a delivery that ends costs the same when ten thousand owners wait for its origin as when a hundred do', () => {
  const [few, many] = [countLooks(100), countLooks(10_000)];
  assert.ok(many <= few + 1 && many < 30, `${many} looks instead of ${few}`);
});

test('owners who wait for one origin have their turns one after the other', () => {
  for (const owners of [33, 200]) {
    const scheduler = createScheduler<Job>({ caps: CAPS });
    for (let owner = 0; owner < owners; owner++)
      for (let count = 0; count < 4; count++)
        scheduler.add(job(owner, { origin: 'http://shared', lane: owner % 3 === 0 ? 'retry' : 'first' }));
    const sending = takeAll(scheduler.next);
    const served = new Map<string, number>();
    const lanes = { first: 0, retry: 0 };
    while (sending.length > 0) {
      const { ownerId, lane } = sending[0]!;
      served.set(ownerId, (served.get(ownerId) ?? 0) + 1);
      lanes[lane] += 1;
      // Owners of one lane are served equally often, except for deliveries that are under way.
      const size = lane === 'retry' ? Math.ceil(owners / 3) : owners - Math.ceil(owners / 3);
      assert.ok(served.get(ownerId)! <= lanes[lane] / size + 2, `${ownerId} was served ${served.get(ownerId)} times`);
      scheduler.finish(sending.shift()!);
      sending.push(...takeAll(scheduler.next));
    }
    assert.equal(lanes.first + lanes.retry, 4 * owners);
  }
});

test('an origin whose limit rises gets more deliveries at once, however many owners wait and whatever limits these have', () => {
  let total = 1;
  const caps = { ...CAPS, owner: 1 };
  const scheduler = createScheduler<Job>({ caps, limitsOfOrigin: () => ({ total, ofOneOwner: 16 }) });
  for (let owner = 0; owner < 100; owner++) scheduler.add(job(owner, { origin: 'http://shared' }));
  const sending = takeAll(scheduler.next);
  assert.equal(sending.length, 1);
  // The owners who wait longest are busy elsewhere.
  for (let owner = 1; owner < 50; owner++) scheduler.add(job(1000 + owner, { ownerId: `w${owner}` }));
  assert.equal(takeAll(scheduler.next).length, 49);
  total = 9;
  scheduler.resume('http://shared', 0);
  assert.equal(takeAll(scheduler.next).length, 8);
  total = 1000;
  scheduler.resume('http://shared', 0);
  assert.equal(takeAll(scheduler.next).length, 7);
});
