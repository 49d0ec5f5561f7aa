/** An owner with more due hooks than a worker takes into memory at a time. */
import assert from 'node:assert/strict';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { startTestWorker } from '../../../../test/support/webhooks/delivery-worker.ts';

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
  // Room is made when attempts end, while scans find the fifth hook, a few times a second.
  const answering = setInterval(() => answers.shift()?.(), 50);
  const isFirst = await Promise.race([quick.waitFor(1).then(() => true), slow.waitFor(150).then(() => false)]);
  clearInterval(answering);
  isHolding = false;
  for (const answer of answers) answer();
  assert.ok(isFirst, 'the backlogs went before the event of the fifth hook');
  for (const id of ids) assert.equal((await waitForDelivery(store, id)).attempts, 1);
  assert.equal(slow.received.length, 200, 'each is sent once');
});
