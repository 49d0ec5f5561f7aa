import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { measureOldBytes } from '../../../../test/support/basics/old-memory.ts';
import { job, takeAll } from '../../../../test/support/webhooks/scheduled-jobs.ts';
import { type Caps, MAX_SMALL_BODY_BYTES } from './concurrency-limits.ts';
import { createScheduler } from './scheduler.ts';
import type { Job, Lane } from './turn-tree.ts';

const WIDE: Caps = {
  worker: 10_000,
  owner: 1000,
  origin: 10_000,
  ownerAtOrigin: 1000,
  hook: 1000,
  largeBodyBytes: 1e12,
};

const jobs = fc.array(
  fc.record({
    hookId: fc.integer({ min: 0, max: 11 }),
    lane: fc.constantFrom<Lane>('first', 'retry'),
    bodyBytes: fc.integer({ min: 0, max: 200_000 }),
  }),
  { maxLength: 200 },
);
const smallCaps = fc.record({
  worker: fc.integer({ min: 1, max: 20 }),
  owner: fc.integer({ min: 1, max: 8 }),
  origin: fc.integer({ min: 1, max: 6 }),
  ownerAtOrigin: fc.integer({ min: 1, max: 6 }),
  hook: fc.integer({ min: 1, max: 4 }),
  largeBodyBytes: fc.integer({ min: 1, max: 1_000_000 }),
});

/** Hooks share origins, and origins are shared by owners, as they are on the internet. */
function place(hookId: number, overrides: Partial<Job>): Job {
  return job(hookId, { origin: `http://o${hookId % 4}`, ownerId: `w${hookId % 3}`, ...overrides });
}

function sumLarge(list: readonly Job[]): number {
  return list.reduce((sum, { bodyBytes }) => sum + (bodyBytes > MAX_SMALL_BODY_BYTES ? bodyBytes : 0), 0);
}

function countBy(list: readonly Job[], key: (item: Job) => string): number[] {
  return [...Map.groupBy(list, key).values()].map((group) => group.length);
}

test('no cap is exceeded, every delivery is sent once, and none waits while it may be sent', () => {
  fc.assert(
    fc.property(jobs, smallCaps, fc.infiniteStream(fc.nat()), (specs, caps, choices) => {
      const scheduler = createScheduler<Job>({ caps });
      const added = specs.map((spec) => place(spec.hookId, spec));
      for (const item of added) scheduler.add(item);
      const sending: Job[] = [];
      const sent: Job[] = [];
      while (sent.length < added.length) {
        const taken = takeAll(scheduler.next);
        sent.push(...taken);
        sending.push(...taken);
        assert.ok(sending.length <= caps.worker);
        assert.ok(countBy(sending, (item) => item.ownerId).every((count) => count <= caps.owner));
        assert.ok(countBy(sending, (item) => item.origin).every((count) => count <= caps.origin));
        const shares = countBy(sending, (item) => `${item.ownerId} ${item.origin}`);
        assert.ok(shares.every((count) => count <= caps.ownerAtOrigin));
        assert.ok(countBy(sending, (item) => String(item.hookId)).every((count) => count <= caps.hook));
        const largest = sumLarge(sending) - caps.largeBodyBytes;
        assert.ok(largest <= 0 || sending.some(({ bodyBytes }) => bodyBytes > largest), 'more than one body beyond');
        assert.ok(sending.length > 0, 'nothing is under way, and yet no job was returned');
        assert.equal(scheduler.sending, sending.length);
        const [ended] = sending.splice((choices.next().value as number) % sending.length, 1);
        scheduler.finish(ended!);
      }
      assert.equal(new Set(sent.map((item) => item.id)).size, added.length);
      assert.equal(scheduler.waiting, 0);
    }),
    { numRuns: 200 },
  );
});

/** The jobs that may still start by the rules in `concurrency-limits.ts`. */
function listStartable(all: readonly Job[], sending: readonly Job[], caps: Caps): Job[] {
  // Deliveries of one hook and lane keep their order, so a large body delays those after it.
  const waiting = [...Map.groupBy(all, ({ hookId, lane }) => `${hookId} ${lane}`).values()].map(([first]) => first!);
  const count = (test: (item: Job) => boolean) => sending.filter(test).length;
  const fair = (cap: number, free: number) => Math.min(cap, Math.max(1, free));
  const retries = count(({ lane }) => lane === 'retry');
  if (sending.length >= caps.worker) return [];
  return waiting.filter((job) => {
    const atOrigin = count(({ origin }) => origin === job.origin);
    const share = count(({ origin, ownerId }) => origin === job.origin && ownerId === job.ownerId);
    if (job.lane === 'retry' && retries >= Math.max(1, Math.floor(caps.worker * 0.75))) return false;
    if (count(({ ownerId }) => ownerId === job.ownerId) >= fair(caps.owner, caps.worker - sending.length)) return false;
    if (atOrigin >= caps.origin || share >= fair(caps.ownerAtOrigin, caps.origin - atOrigin)) return false;
    if (!hasMemory(job, sending, caps)) return false;
    return count(({ hookId }) => hookId === job.hookId) < caps.hook;
  });
}

function hasMemory({ bodyBytes, ownerId }: Job, sending: readonly Job[], { largeBodyBytes }: Caps): boolean {
  if (bodyBytes <= MAX_SMALL_BODY_BYTES) return true;
  const own = sumLarge(sending.filter((item) => item.ownerId === ownerId));
  const free = largeBodyBytes - sumLarge(sending);
  return own === 0 ? free > 0 : own + bodyBytes <= free;
}

test('nothing that may start by the rules is left waiting', () => {
  fc.assert(
    fc.property(jobs, smallCaps, fc.infiniteStream(fc.nat()), (specs, caps, choices) => {
      const scheduler = createScheduler<Job>({ caps });
      const waiting = new Map(specs.map((spec) => place(spec.hookId, spec)).map((item) => [item.id, item]));
      for (const item of waiting.values()) scheduler.add(item);
      const sending: Job[] = [];
      while (waiting.size > 0) {
        for (const item of takeAll(scheduler.next)) {
          waiting.delete(item.id);
          sending.push(item);
        }
        assert.deepEqual(listStartable([...waiting.values()], sending, caps), []);
        const [ended] = sending.splice((choices.next().value as number) % sending.length, 1);
        scheduler.finish(ended!);
      }
    }),
    { numRuns: 200 },
  );
});

test('deliveries of one hook and lane keep their order', () => {
  fc.assert(
    fc.property(jobs, (specs) => {
      const scheduler = createScheduler<Job>({ caps: WIDE });
      for (const spec of specs) scheduler.add(place(spec.hookId, spec));
      const sent = takeAll(scheduler.next);
      for (const group of Map.groupBy(sent, (item) => `${item.hookId} ${item.lane}`).values())
        assert.deepEqual(
          group.map((item) => item.id),
          group.map((item) => item.id).sort((a, b) => a - b),
        );
    }),
  );
});

test('an owner with many deliveries gets no more turns than one with few', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 6 }), fc.integer({ min: 1, max: 20 }), (owners, each) => {
      const scheduler = createScheduler<Job>({ caps: WIDE });
      for (let count = 0; count < 500; count += 1) scheduler.add(job(0));
      for (let owner = 1; owner < owners; owner += 1)
        for (let count = 0; count < each; count += 1) scheduler.add(job(owner));
      const sent = takeAll(scheduler.next);
      const lastQuiet = sent.findLastIndex((item) => item.hookId !== 0);
      assert.ok(lastQuiet <= each * owners, `the last quiet delivery came at ${lastQuiet}`);
    }),
  );
});

test('an owner with many hooks has the share of one owner', () => {
  const scheduler = createScheduler<Job>({ caps: WIDE });
  for (let hook = 0; hook < 50; hook += 1) scheduler.add(job(hook, { ownerId: 'many' }));
  for (let count = 0; count < 50; count += 1) scheduler.add(job(99, { ownerId: 'one' }));
  const firstHalf = takeAll(scheduler.next).slice(0, 50);
  assert.equal(firstHalf.filter((item) => item.ownerId === 'one').length, 25);
});

test('a large body uses up several turns', () => {
  const scheduler = createScheduler<Job>({ caps: WIDE });
  for (let count = 0; count < 40; count += 1) {
    scheduler.add(job(1, { bodyBytes: 16_384 * 3 }));
    scheduler.add(job(2, { bodyBytes: 10 }));
  }
  const first = takeAll(scheduler.next).slice(0, 25);
  assert.equal(first.filter((item) => item.hookId === 1).length, 5);
});

test('retries get a fifth of the turns while there are first attempts, and all of them otherwise', () => {
  const scheduler = createScheduler<Job>({ caps: WIDE });
  for (let count = 0; count < 200; count += 1) scheduler.add(job(count % 5));
  for (let count = 0; count < 100; count += 1) scheduler.add(job(count % 5, { lane: 'retry' }));
  const sent = takeAll(scheduler.next);
  assert.equal(sent.length, 300);
  assert.equal(sent.slice(0, 100).filter((item) => item.lane === 'retry').length, 20);
});

test('retries leave a quarter of the worker to first attempts', () => {
  const scheduler = createScheduler<Job>({ caps: { ...WIDE, worker: 100 } });
  for (let count = 0; count < 200; count += 1) scheduler.add(job(count, { lane: 'retry' }));
  assert.equal(takeAll(scheduler.next).length, 75);
  for (let count = 0; count < 200; count += 1) scheduler.add(job(count));
  assert.deepEqual(
    takeAll(scheduler.next).map((item) => item.lane),
    Array.from({ length: 25 }, () => 'first'),
  );
});

test('deliveries that a breaker delays are sent after resume()', () => {
  let allowed = 0;
  const scheduler = createScheduler<Job>({
    caps: WIDE,
    limitsOfOrigin: () => ({ total: allowed, ofOneOwner: Number.POSITIVE_INFINITY }),
  });
  for (let count = 0; count < 5; count += 1) scheduler.add(job(1));
  assert.equal(scheduler.next(), undefined);
  allowed = 1;
  scheduler.resume('http://o1', 1);
  assert.equal(takeAll(scheduler.next).length, 1);
  allowed = 4;
  scheduler.resume('http://o1', 1);
  assert.equal(takeAll(scheduler.next).length, 3);
});

test('a dropped hook is forgotten in both lanes, and can come again', () => {
  const scheduler = createScheduler<Job>({ caps: WIDE });
  scheduler.add(job(1));
  scheduler.add(job(1, { lane: 'retry' }));
  scheduler.add(job(2));
  assert.equal(scheduler.drop(1).length, 2);
  assert.equal(scheduler.countWaiting(1, 'first'), 0);
  scheduler.add(job(1));
  assert.equal(takeAll(scheduler.next).length, 2);
});

test('large bodies share the memory of the worker, and small ones do not wait for it', () => {
  const scheduler = createScheduler<Job>({ caps: { ...WIDE, largeBodyBytes: 1_000_000 } });
  for (let count = 0; count < 20; count += 1) {
    scheduler.add(job(1, { bodyBytes: 100_000 }));
    scheduler.add(job(2, { bodyBytes: 400_000 }));
    scheduler.add(job(3));
  }
  const sending = takeAll(scheduler.next);
  assert.equal(sending.filter((item) => item.hookId === 3).length, 20);
  assert.ok(sumLarge(sending) <= 1_000_000);
  assert.ok([1, 2].every((hookId) => sending.some((item) => item.hookId === hookId)));
  for (let left = 40 - (sending.length - 20); left > 0; ) {
    scheduler.finish(sending.find((item) => item.hookId !== 3)!);
    sending.splice(
      sending.findIndex((item) => item.hookId !== 3),
      1,
    );
    const more = takeAll(scheduler.next);
    left -= more.length;
    sending.push(...more);
  }
  assert.equal(scheduler.waiting, 0);
});

test('deliveries leave little in old memory once they have been sent', async () => {
  const scheduler = createScheduler<Job>({ caps: WIDE });
  const rounds = 10_000;
  const bytes = await measureOldBytes(() => {
    for (let round = 0; round < rounds; round += 1) {
      scheduler.add(job(round % 16));
      scheduler.finish(scheduler.next()!);
    }
  });
  assert.ok(bytes < 40 * rounds, `${bytes / rounds} bytes a delivery`);
});
