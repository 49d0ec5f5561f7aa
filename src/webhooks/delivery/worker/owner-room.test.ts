/** An owner with more due hooks than a worker takes into memory at a time. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { startTestWorker, waitForHookQueue } from '../../../../test/support/webhooks/delivery-worker.ts';
import { type Store, statement } from '../../../database/store.ts';
import { realWorld } from '../../../world.ts';
import { NEVER_MS } from '../queue/delivery-store.ts';
import { CAPS } from '../schedule/concurrency-limits.ts';

const ROOM_FOR_ONE = { maxOfOwner: 1, minStayMs: 0 };

forEachEngine('a hook that finds no room in memory does not wait for the backlogs of its owner', async (store) => {
  const answers: (() => void)[] = [];
  let isHolding = true;
  await using slow = await startReceiver((_, response) => {
    if (isHolding) answers.push(() => response.end('ok'));
    else response.end('ok');
  });
  await using quick = await startReceiver();
  const ids: number[] = [];
  for (const hookId of [1, 2, 3, 4]) {
    await insertTestHook(store, { id: hookId, url: slow.url });
    for (let count = 0; count < 50; count += 1) ids.push(await enqueueTestDelivery(store, { hookId, url: slow.url }));
  }
  await insertTestHook(store, { id: 5, url: quick.url });
  ids.push(await enqueueTestDelivery(store, { hookId: 5, url: quick.url }));
  const room = { maxOfOwner: 4, minStayMs: 100 };
  await using worker = startTestWorker(store, undefined, undefined, undefined, room);
  worker.wake();
  // Hook queues make room when attempts end, if scans have found the fifth hook, which they do a few times a second.
  const answering = setInterval(() => answers.shift()?.(), 50);
  const isFirst = await Promise.race([quick.waitFor(1).then(() => true), slow.waitFor(150).then(() => false)]);
  clearInterval(answering);
  isHolding = false;
  for (const answer of answers) answer();
  assert.ok(isFirst, 'the backlogs went before the event of the fifth hook');
  for (const id of ids) assert.equal((await waitForDelivery(store, id)).attempts, 1);
  assert.equal(slow.received.length, 200, 'each is sent once');
});

/**
 * Hook 1 has this number of deliveries, of which up to four are under way until the test answers them, while hook 2 of the same owner
 * waits for room in memory.
 */
async function startCrowded(store: Store, deliveries: number) {
  const answers: ServerResponse[] = [];
  const receiver = await startReceiver((_, response) => void answers.push(response));
  for (const hookId of [1, 2]) await insertTestHook(store, { id: hookId, url: receiver.url });
  for (let count = 0; count < deliveries; count += 1)
    await enqueueTestDelivery(store, { hookId: 1, url: receiver.url });
  await enqueueTestDelivery(store, { hookId: 2, url: receiver.url });
  const worker = startTestWorker(store, undefined, undefined, undefined, ROOM_FOR_ONE);
  worker.wake();
  await receiver.waitFor(Math.min(deliveries, CAPS.hook));
  const end = async (): Promise<void> => {
    for (const response of answers) response.end();
    await worker.stop();
    await receiver[Symbol.asyncDispose]();
  };
  return { receiver, answers, [Symbol.asyncDispose]: end };
}

const failsSql = statement<{ fails: number }>('test-fails', 'SELECT fails FROM endpoint_queue WHERE hook_id = 1');

forEachEngine('a hook that makes room is paused by an attempt that was under way', async (store) => {
  await using crowded = await startCrowded(store, 5);
  const [accepted, limited, ...others] = crowded.answers;
  const { next_at_ms: dueAtMs } = await waitForHookQueue(store, 1);
  accepted!.end('ok');
  await waitForHookQueue(store, 1, ({ next_at_ms }) => next_at_ms > dueAtMs);
  const answeredAtMs = realWorld.nowMs();
  limited!.writeHead(429, { 'retry-after': '300' }).end();
  await waitForHookQueue(store, 1, ({ parked }) => parked === 1);
  assert.deepEqual(await store.read(failsSql), [{ fails: 1 }]);
  for (const response of others) response.end();
  // The second hook gets the place once the results of the first are stored.
  await crowded.receiver.waitFor(5);
  const { parked, next_at_ms } = await waitForHookQueue(store, 1);
  assert.equal(parked, 1);
  assert.ok(next_at_ms >= answeredAtMs + 300_000, `paused for ${next_at_ms - answeredAtMs} ms`);
});

const attemptedSql = statement<{ count: number }>(
  'test-attempted',
  'SELECT COUNT(*) AS count FROM deliveries WHERE attempts > 0',
);

forEachEngine('a hook that has all its deliveries under way makes no room, and sleeps after them', async (store) => {
  await using crowded = await startCrowded(store, 4);
  const [answered, ...others] = crowded.answers;
  const { next_at_ms: dueAtMs } = await waitForHookQueue(store, 1);
  answered!.end('ok');
  await waitUntil(async () => (await store.read(attemptedSql))[0]?.count === 1, 10);
  assert.equal((await waitForHookQueue(store, 1)).next_at_ms, dueAtMs, 'it is not due again for nothing');
  for (const response of others) response.end('ok');
  await crowded.receiver.waitFor(5);
  assert.equal((await waitForHookQueue(store, 1)).next_at_ms, NEVER_MS);
});

forEachEngine('a hook with nothing left sleeps while others wait for room, and is not due again', async (store) => {
  await using crowded = await startCrowded(store, 1);
  crowded.answers[0]!.end('ok');
  await crowded.receiver.waitFor(2);
  assert.equal((await waitForHookQueue(store, 1)).next_at_ms, NEVER_MS);
});
