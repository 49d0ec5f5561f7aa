import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createStillWorld } from '../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../test/support/store/engines.ts';
import { createIdSource, RANGE_MS, reserveStripe, type Stripe, type StripeTable } from './id-source.ts';
import { createIdMaker, ID_EPOCH_MS, IDS_PER_STRIPE_MS, type IdRange, idAtMs, STRIPE_COUNT } from './ids.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);

/** The ids of a reserved range, as `[from, until)` in each millisecond. */
function idsOf({ stripe, fromMs, untilMs }: IdRange): { has(id: number): boolean } {
  return {
    has: (id) => {
      const atMs = ID_EPOCH_MS + Math.floor(id / (STRIPE_COUNT * IDS_PER_STRIPE_MS));
      const place = Math.floor(id / IDS_PER_STRIPE_MS) % STRIPE_COUNT;
      return place === stripe && atMs >= fromMs && atMs < untilMs;
    },
  };
}

function assertDisjoint(ranges: readonly IdRange[]): void {
  for (const ofStripe of Map.groupBy(ranges, ({ stripe }) => stripe).values()) {
    const ordered = ofStripe.toSorted((one, other) => one.fromMs - other.fromMs);
    for (const [index, range] of ordered.entries())
      assert.ok(index === 0 || ordered[index - 1]!.untilMs <= range.fromMs, JSON.stringify(ordered));
  }
}

/** The database in memory: a reservation succeeds only if the stripe has not changed since it was read. */
function createTable(): StripeTable & { readonly stripes: Stripe[] } {
  const stripes = Array.from({ length: STRIPE_COUNT }, (_, stripe) => ({ stripe, claimed_until_ms: ID_EPOCH_MS + 1 }));
  return {
    stripes,
    list: async () => stripes.toSorted((a, b) => a.claimed_until_ms - b.claimed_until_ms || a.stripe - b.stripe),
    reserve: async ({ stripe, claimed_until_ms }, untilMs) => {
      if (stripes[stripe]!.claimed_until_ms !== claimed_until_ms) return false;
      stripes[stripe] = { stripe, claimed_until_ms: untilMs };
      return true;
    },
  };
}

test('whatever the clock says, the ids of a range rise, come once and stay inside it', () => {
  const step = fc.record({ clockMs: fc.integer({ min: -20, max: 40 }), count: fc.integer({ min: 1, max: 100 }) });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: STRIPE_COUNT - 1 }), fc.array(step, { maxLength: 60 }), (stripe, steps) => {
      const range = { stripe, fromMs: NOON_MS, untilMs: NOON_MS + 30 };
      const maker = createIdMaker(range);
      const ids = idsOf(range);
      let last = 0;
      for (const { clockMs, count } of steps) {
        const run = maker.makeRun(NOON_MS + clockMs, count);
        if (run === undefined) continue;
        assert.ok(run.firstId > last && run.count >= 1 && run.count <= count);
        last = run.firstId + run.count - 1;
        assert.ok(ids.has(run.firstId) && ids.has(last) && Number.isSafeInteger(last));
        assert.ok(maker.unusedFromMs > NOON_MS);
      }
    }),
  );
});

test('a range yields as many ids as it stands for, and then none', () => {
  const maker = createIdMaker({ stripe: 5, fromMs: NOON_MS, untilMs: NOON_MS + 100 });
  let count = 0;
  for (let run = maker.makeRun(0, 7); run !== undefined; run = maker.makeRun(0, 7)) count += run.count;
  assert.equal(count, 100 * IDS_PER_STRIPE_MS);
  assert.equal(maker.makeRun(NOON_MS + 50, 1), undefined);
});

test('ids are of their time', async () => {
  const world = createStillWorld(NOON_MS);
  const source = createIdSource(createTable(), world);
  const [first = 0] = await source.makeIds(1);
  world.moveMs(1);
  const [second = 0] = await source.makeIds(1);
  assert.ok(idAtMs(NOON_MS) <= first && first < idAtMs(NOON_MS + 1));
  assert.ok(idAtMs(NOON_MS + 1) <= second && second < idAtMs(NOON_MS + 2));
  world.moveMs(40 * 24 * 3_600_000);
  const [late = 0] = await source.makeIds(1);
  assert.ok(late >= idAtMs(world.nowMs()), 'after a long rest too');
});

test('a clock beyond 2094 is refused, and one before 2025 makes ids all the same', async () => {
  const table = createTable();
  await assert.rejects(createIdSource(table, createStillWorld(Date.UTC(2300, 0))).makeIds(1), {
    code: 'internal',
    message: /^Cannot make ids: the clock says 2300-01-01/,
  });
  const [id = 0] = await createIdSource(table, createStillWorld(0)).makeIds(1);
  assert.ok(id > 0);
});

test('a thousand million ids of many processes, whose clocks jump and which are killed, hold none twice', async () => {
  const TOTAL = 1e9;
  const table = createTable();
  const random = createRandom(7);
  const below = (limit: number) => Math.floor(random() * limit);
  const ranges: IdRange[] = [];
  // Ids are counted in runs of up to 32 consecutive ids. No two runs overlap, because of two facts that are checked for every run:
  // ranges are disjoint, and a run rises inside its range.
  let made = 0;
  for (let processes = 0; made < TOTAL; processes += 1) {
    const offsetMs = below(20) === 0 ? below(7_200_000) - 3_600_000 : below(2_000) - 1_000;
    const range = await reserveStripe(table, { fromMs: NOON_MS + processes * 50 + offsetMs, random });
    ranges.push(range);
    const maker = createIdMaker(range);
    let nowMs = range.fromMs;
    let last = idAtMs(range.fromMs) - 1;
    const end = idAtMs(range.untilMs);
    for (let left = 20 + below(600_000); left > 0; ) {
      const run = maker.makeRun(nowMs, left);
      if (run === undefined) break;
      if (run.firstId <= last || run.firstId + run.count > end) assert.fail(`${run.firstId} is not above ${last}`);
      last = run.firstId + run.count - 1;
      left -= run.count;
      made += run.count;
      if (run.firstId % 97 === 0) nowMs += below(9) - 3;
    }
  }
  assertDisjoint(ranges);
  assert.ok(ranges.length > 1000 && made >= TOTAL);
});

test('of processes that make ids in the same milliseconds, side by side, no two make the same', async () => {
  const table = createTable();
  const random = createRandom(11);
  // Each process has a wrong clock that jumps; sometimes one is killed and another starts.
  const start = () => {
    const world = createStillWorld(NOON_MS + Math.floor(random() * 5_000));
    return { world, source: createIdSource(table, { nowMs: () => world.nowMs(), random }) };
  };
  const running = Array.from({ length: 150 }, start);
  const seen = new Set<number>();
  let made = 0;
  for (let round = 0; round < 200; round += 1) {
    const batches = await Promise.all(running.map(({ source }) => source.makeIds(1 + Math.floor(random() * 40))));
    for (const ids of batches) {
      made += ids.length;
      for (const id of ids) seen.add(id);
      assert.deepEqual(
        ids.toSorted((a, b) => a - b),
        ids,
      );
    }
    for (const { world } of running) world.moveMs(Math.floor(random() * 300) - 50);
    running[Math.floor(random() * running.length)] = start();
  }
  assert.equal(seen.size, made);
});

/** Mulberry32: the same numbers in every run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

forEachEngine('stores of several processes on one database never make one id twice', async (store, { openAnother }) => {
  // All have the same clock, which stands still: they request ids of one millisecond.
  const world = createStillWorld(NOON_MS);
  const others = await Promise.all(Array.from({ length: 3 }, () => openAnother({ world })));
  const stores = [store, ...others];
  const batches = await Promise.all(
    Array.from({ length: 40 }, (_, index) => stores[index % stores.length]!.makeIds(1 + (index % 50))),
  );
  const ids = batches.flat();
  assert.equal(new Set(ids).size, ids.length);
  // The same after a restart, with a clock that was set back.
  world.moveMs(-3_600_000);
  const restarted = await openAnother({ world });
  const more = await restarted.makeIds(RANGE_MS * 4);
  assert.equal(new Set([...ids, ...more]).size, ids.length + more.length);
});
