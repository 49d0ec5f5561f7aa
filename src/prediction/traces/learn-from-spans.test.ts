import assert from 'node:assert/strict';
import {
  createRequest,
  HOLD_MS,
  listLearned,
  openQueue,
  spanOf,
  type TestRequest,
} from '../../../test/support/prediction/span-queue.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { listSamples } from '../observations/sample-store.ts';
import { selectLearnableSpans } from './learnable-spans.ts';
import { countWaitingSpans } from './span-store.ts';

const never = new AbortController().signal;

forEachEngine('a request is learned with the load of requests that ended after it', async (store) => {
  const { queue, world } = openQueue(store);
  const at = world.nowMs();
  // Exported as they end: the long request that was there first comes last.
  const exports = [
    [spanOf({ id: 'b', startMs: at + 1000, ttftMs: 100, latencyMs: 600 })],
    [spanOf({ id: 'other', startMs: at + 1100, ttftMs: 100, latencyMs: 600, server: 's2' })],
    [spanOf({ id: 'a', startMs: at, ttftMs: 500, latencyMs: 8000 })],
  ];
  for (const spans of exports) await queue.add(selectLearnableSpans(spans, queue.rules()).spans);
  await queue.learnDue(never);
  assert.deepEqual(await listLearned(store), [], 'none has waited long enough');
  world.moveMs(HOLD_MS);
  await queue.learnDue(never);
  assert.equal((await listLearned(store)).length, 1, 'the others have not waited long enough');
  world.moveMs(1100);
  await queue.learnDue(never);
  // The long request counts as load after it was learned, too.
  assert.deepEqual(await listLearned(store), [
    [at, 's1', 0, 0, 500, 750],
    [at + 1000, 's1', 0, 1, 100, 50],
    [at + 1100, 's2', 0, 0, 100, 50],
  ]);
});

/** Learns six requests that end at once and two long ones, and then one that starts while only these are under way. */
async function learnBusyMinute(store: Store, maxUnderWay: number) {
  const { queue, world, lines } = openQueue(store, { maxUnderWay });
  const at = world.nowMs();
  const ended = Array.from({ length: 6 }, (_, i) => ({ id: `e${i}`, startMs: at + i, ttftMs: 5, latencyMs: 9 }));
  const long = ['l0', 'l1'].map((id) => ({ id, startMs: at + 20, ttftMs: 50, latencyMs: 9000 }));
  const last = { id: 'last', startMs: at + 1000, ttftMs: 100, latencyMs: 600 };
  await queue.add(selectLearnableSpans([...ended, ...long, last].map(spanOf), queue.rules()).spans);
  for (const ms of [HOLD_MS + 100, 1000]) {
    world.moveMs(ms);
    await queue.learnDue(never);
  }
  const [, , , running] = (await listLearned(store)).at(-1)!;
  return { running, lines };
}

forEachEngine('requests under way are load, however many have just ended', async (store) => {
  assert.deepEqual(await learnBusyMinute(store, 2), { running: 2, lines: [] });
});

forEachEngine('a lack of requests under way is logged when it begins and when it ends', async (store) => {
  const { queue, world, lines } = openQueue(store, { maxUnderWay: 1 });
  const at = world.nowMs();
  const long = ['l0', 'l1'].map((id) => ({ id, startMs: at, ttftMs: 50, latencyMs: 9000 }));
  const later = [1000, 2000, 9500, 9600].map((ms) => ({ id: `${ms}`, startMs: at + ms, ttftMs: 10, latencyMs: 60 }));
  await queue.add(selectLearnableSpans([...long, ...later].map(spanOf), queue.rules()).spans);
  const logged: number[] = [];
  world.moveMs(HOLD_MS);
  // The round in between has nothing to learn.
  for (const ms of [0, 1000, 1000, 1000, 6500, 100]) {
    world.moveMs(ms);
    await queue.learnDue(never);
    logged.push(lines.length);
  }
  assert.deepEqual(logged, [0, 1, 1, 1, 2, 2]);
  assert.deepEqual(lines, [
    'Cannot count all requests of traces that were under way; loads are learned too low',
    'All requests of traces that were under way are counted again',
  ]);
});

for (const [title, rounds] of [
  ['one round', [40_000]],
  ['two rounds', [8000, 40_000]],
  ['the first round after a restart', [8000, 'restart', 40_000]],
  ['rounds before and after a request that comes late', [8000, 'late', 9000, 40_000]],
] as [string, (number | 'late' | 'restart')[]][])
  forEachEngine(`a server with few requests keeps its pace beside a busy one, in ${title}`, async (store) => {
    let { queue, world } = openQueue(store);
    const at = world.nowMs();
    const first: TestRequest = { id: 'first', server: 'rare', startMs: at, ttftMs: 100, latencyMs: 600 };
    const others: TestRequest[] = [
      ...Array.from({ length: 2100 }, (_, i) => ({ id: `${i}`, startMs: at + 1000 + 3 * i, ttftMs: 5, latencyMs: 9 })),
      { id: 'long', server: 'rare', startMs: at + 10_000, ttftMs: 100, latencyMs: 35_000 },
      { id: 'last', server: 'rare', startMs: at + 40_000, ttftMs: 100, latencyMs: 600 },
    ];
    const add = (requests: readonly TestRequest[]) =>
      queue.add(selectLearnableSpans(requests.map(spanOf), { ...queue.rules(), nowMs: at }).spans);
    const isLate = rounds.includes('late');
    await add(isLate ? others : [first, ...others]);
    for (const round of rounds)
      if (round === 'restart') ({ queue, world } = openQueue(store));
      else if (round === 'late') await add([first]);
      else {
        world.moveMs(at + HOLD_MS + round - world.nowMs());
        await queue.learnDue(never);
      }
    const last = (await listSamples(store, 'm', { limit: 1 }))[0]!.observation;
    assert.equal(last.atMs, at + 40_000);
    // The prompt, the first token, and one for each 50 ms since.
    assert.equal(last.input.inflightTokens, 100 + 1 + 29_900 / 50);
  });

forEachEngine('a span that is sent twice is learned once, also after it was learned', async (store) => {
  const { queue, world } = openQueue(store);
  const span = spanOf({ id: 'a', startMs: world.nowMs(), ttftMs: 100, latencyMs: 600 });
  const { spans } = selectLearnableSpans([span], queue.rules());
  await queue.add(spans);
  await queue.add(spans);
  world.moveMs(HOLD_MS);
  await queue.learnDue(never);
  await queue.add(spans);
  await queue.learnDue(never);
  assert.equal((await listLearned(store)).length, 1);
  world.moveMs(61_000);
  await queue.learnDue(never);
  assert.deepEqual(await countWaitingSpans(store), new Map(), 'what is over is deleted');
  // After that, the request id of the observation is what refuses it.
  await queue.add(spans);
  await queue.learnDue(never);
  assert.equal((await listLearned(store)).length, 1);
});

forEachEngine('spans that are over are deleted a batch at a time', async (store) => {
  const limits: number[] = [];
  const watched: Store = {
    ...store,
    write: async (of, parameters = []) => {
      if (of.name === 'waiting-span-delete-over') limits.push(Number(parameters.at(-1)));
      return await store.write(of, parameters);
    },
  };
  const { queue, world } = openQueue(watched);
  const spans = Array.from({ length: 100 }, (_, i) =>
    spanOf({ id: `s${i}`, startMs: world.nowMs() + i, ttftMs: 100, latencyMs: 600 }),
  );
  await queue.add(selectLearnableSpans(spans, queue.rules()).spans);
  world.moveMs(HOLD_MS + 61_000);
  await queue.learnDue(never);
  assert.deepEqual([limits, await countWaitingSpans(store)], [[32, 64, 128], new Map()]);
});

forEachEngine('spans that are added while a round counts what waits are counted', async (store) => {
  const counting = Promise.withResolvers<void>();
  const hasAdded = Promise.withResolvers<void>();
  const watched: Store = {
    ...store,
    read: async (of, parameters = []) => {
      const rows = await store.read(of, parameters);
      if (of.name !== 'waiting-span-count') return rows;
      counting.resolve();
      await hasAdded.promise;
      return rows;
    },
  };
  const { queue, world, metrics } = openQueue(watched);
  const round = queue.learnDue(never);
  await counting.promise;
  await queue.add(selectLearnableSpans([spanOf({ ...createRequest(), startMs: world.nowMs() })], queue.rules()).spans);
  hasAdded.resolve();
  await round;
  assert.match(await metrics.metrics(), /^trivet_prediction_trace_requests_waiting 1$/m);
});
