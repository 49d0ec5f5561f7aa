import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { HOLD_MS, listLearned, openQueue, spanOf } from '../../../test/support/prediction/span-queue.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { Failure } from '../../errors.ts';
import { selectLearnableSpans } from './learnable-spans.ts';

const never = new AbortController().signal;

/** Sends requests of a server that start now. Returns how many were rejected, and why. */
async function send({ queue, world }: ReturnType<typeof openQueue>, server: string, count: number) {
  const startMs = world.nowMs();
  const requests = Array.from({ length: count }, () => {
    return { id: randomUUID(), startMs, ttftMs: 100, latencyMs: 600, server };
  });
  const { spans, rejected, reason } = selectLearnableSpans(requests.map(spanOf), queue.rules());
  await queue.add(spans);
  return [rejected, reason];
}

const TOO_MANY = [1, 'span 0: the server must send fewer requests: 4 of it wait already'];

forEachEngine(
  'a server that fills its half of the queue leaves the other half to others, until it is learned',
  async (store) => {
    const opened = openQueue(store, { maxWaiting: 8 });
    const { queue, world } = opened;
    assert.deepEqual(await send(opened, 'busy', 4), [0, '']);
    assert.deepEqual(await send(opened, 'busy', 1), TOO_MANY);
    assert.deepEqual(await send(opened, 'other', 2), [0, '']);
    for (const ms of [HOLD_MS + 1000, 60_000]) {
      await queue.learnDue(never);
      world.moveMs(ms);
    }
    await queue.learnDue(never);
    assert.equal((await listLearned(store)).length, 6);
    assert.deepEqual(await send(opened, 'busy', 4), [0, '']);
  },
);

forEachEngine('a server has half of the queue in all processes together', async (store, { openAnother }) => {
  const [first, second] = [store, await openAnother()].map((each) => openQueue(each, { maxWaiting: 8 }));
  assert.deepEqual(await send(first!, 'busy', 4), [0, '']);
  await second!.queue.learnDue(never);
  assert.deepEqual(await send(second!, 'busy', 1), TOO_MANY);
  assert.deepEqual(await send(second!, 'other', 2), [0, '']);
});

forEachEngine('the places of a server are counted past a page of rows', async (store) => {
  const opened = openQueue(store, { maxWaiting: 10_000 });
  await send(opened, 'busy', 2500);
  await send(opened, 'other', 1);
  const restarted = openQueue(store, { maxWaiting: 5000 });
  await restarted.queue.learnDue(never);
  assert.match(String((await send(restarted, 'busy', 1))[1]), /2500 of it wait already/);
  assert.deepEqual(await send(restarted, 'other', 1), [0, '']);
  assert.match(await restarted.metrics.metrics(), /^trivet_prediction_trace_requests_waiting 2502$/m);
});

forEachEngine('requests that could not be stored take no place', async (store) => {
  let isAway = true;
  const opened = openQueue(
    {
      ...store,
      writeAll: async (statements) => {
        if (isAway) throw new Failure('unavailable', 'Cannot reach the database');
        return await store.writeAll(statements);
      },
    },
    { maxWaiting: 8 },
  );
  for (let attempt = 0; attempt < 3; attempt++)
    await assert.rejects(send(opened, 'busy', 4), { message: 'Cannot reach the database' });
  isAway = false;
  assert.deepEqual(await send(opened, 'busy', 4), [0, '']);
});

forEachEngine('requests that are being stored take their places', async (store) => {
  const opened = openQueue(store, { maxWaiting: 8 });
  const storing = send(opened, 'busy', 4);
  assert.deepEqual(await send(opened, 'busy', 1), TOO_MANY);
  assert.deepEqual(await storing, [0, '']);
});
