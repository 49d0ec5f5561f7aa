/** Several owners on one worker, some with failing receivers; real sockets, both engines. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { findFreePort } from '../../../../test/support/basics/free-port.ts';
import { type ReceivedRequest, startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  readDelivery,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { createRandom } from '../../../../test/support/webhooks/delivery-simulation.ts';
import { startTestWorker, waitForHookQueue } from '../../../../test/support/webhooks/delivery-worker.ts';
import { type Store, statement } from '../../../database/store.ts';
import { realWorld } from '../../../world.ts';
import { moveHookQueueStatement, releaseHookQueueStatement } from '../queue/delivery-store.ts';

const FAILING = 1;
const HEALTHY = 2;

async function enqueueMany(store: Store, hook: { hookId: number; url: string; ownerId: string }, count: number) {
  const ids: number[] = [];
  for (let index = 0; index < count; index += 1) ids.push(await enqueueTestDelivery(store, hook));
  return ids;
}

function answerByPath(ofFailing: (response: ServerResponse) => void) {
  return ({ path }: ReceivedRequest, response: ServerResponse) => {
    if (path === '/failing') ofFailing(response);
    else response.end('ok');
  };
}

const failures: [title: string, answer: (response: ServerResponse) => void][] = [
  ['answers 500', (response) => response.writeHead(500).end()],
  ['answers 429 and asks for a day', (response) => response.writeHead(429, { 'retry-after': '86400' }).end()],
  ['cuts the connection', (response) => response.destroy()],
];
for (const [title, fail] of failures)
  forEachEngine(`a hook whose path ${title} is paused; another owner's at the same origin is not`, async (store) => {
    await using receiver = await startReceiver(answerByPath(fail));
    const { origin } = new URL(receiver.url);
    const failing = { hookId: FAILING, url: `${origin}/failing`, ownerId: 'owner-1' };
    const healthy = { hookId: HEALTHY, url: `${origin}/healthy`, ownerId: 'owner-2' };
    for (const { hookId, ...hook } of [failing, healthy]) await insertTestHook(store, { id: hookId, ...hook });
    await using worker = startTestWorker(store);
    await enqueueMany(store, failing, 30);
    worker.wake();
    const paused = await waitForHookQueue(store, FAILING, (row) => row.parked === 1);
    const attempts = () => receiver.received.filter(({ path }) => path === '/failing').length;
    const before = attempts();
    for (const id of await enqueueMany(store, healthy, 20)) {
      worker.wake([HEALTHY]);
      const row = await waitForDelivery(store, id);
      assert.deepEqual([row.state, row.attempts], ['succeeded', 1]);
    }
    assert.equal((await waitForHookQueue(store, HEALTHY)).parked, 0);
    // Healthy hooks did not wait for probes: the first pause takes five seconds, and three probes half a minute.
    assert.ok(attempts() - before <= 4, `${attempts()} attempts after ${before}`);
    assert.ok(paused.next_at_ms > 0);
  });

forEachEngine('a path that never answers takes no place from another owner at the same origin', async (store) => {
  await using receiver = await startReceiver(answerByPath(() => {}));
  const { origin } = new URL(receiver.url);
  const silent = Array.from({ length: 10 }, (_, index) => index + 1);
  for (const id of silent) await insertTestHook(store, { id, url: `${origin}/failing`, ownerId: 'owner-1' });
  await insertTestHook(store, { id: 99, url: `${origin}/healthy`, ownerId: 'owner-2' });
  const waiting: number[] = [];
  for (const hookId of silent)
    waiting.push(...(await enqueueMany(store, { hookId, url: `${origin}/failing`, ownerId: 'owner-1' }, 5)));
  await using worker = startTestWorker(store);
  worker.wake();
  await receiver.waitFor(8);
  for (const id of await enqueueMany(store, { hookId: 99, url: `${origin}/healthy`, ownerId: 'owner-2' }, 20)) {
    worker.wake([99]);
    assert.equal((await waitForDelivery(store, id)).attempts, 1);
  }
  // Closing the receiver ends the attempts before their deadline of fifteen seconds.
  await receiver[Symbol.asyncDispose]();
  const attempted = await Promise.all(waiting.map((id) => readDelivery(store, id)));
  assert.ok(attempted.filter(({ attempts }) => attempts > 0).length <= 16);
});

const changeUrlSql = statement('test-change-url', 'UPDATE hooks SET url = $2 WHERE id = $1');

async function moveHook(store: Store, hookId: number, url: string): Promise<void> {
  await store.writeAll([
    moveHookQueueStatement(hookId, new URL(url).origin),
    releaseHookQueueStatement(hookId, realWorld.nowMs()),
    { statement: changeUrlSql, parameters: [hookId, url] },
  ]);
}

forEachEngine(
  'a hook that moves to an address without a listener pauses no other at the origin it leaves',
  async (store) => {
    const answers: (() => void)[] = [];
    let isHolding = true;
    await using receiver = await startReceiver((_, response) => {
      if (isHolding) answers.push(() => response.end());
      else response.end();
    });
    const { origin } = new URL(receiver.url);
    const moving = { hookId: 1, url: `${origin}/moving`, ownerId: 'owner-1' };
    const healthy = { hookId: 2, url: `${origin}/healthy`, ownerId: 'owner-2' };
    for (const { hookId, ...hook } of [moving, healthy]) await insertTestHook(store, { id: hookId, ...hook });
    await enqueueMany(store, moving, 60);
    await using worker = startTestWorker(store);
    worker.wake();
    await receiver.waitFor(4);
    // The other 56 deliveries wait in memory for the origin that the hook leaves.
    await moveHook(store, 1, `http://127.0.0.1:${await findFreePort()}/`);
    isHolding = false;
    for (const answer of answers) answer();
    await waitForHookQueue(store, 1, (row) => row.parked === 1);
    const id = (await enqueueMany(store, healthy, 1))[0]!;
    worker.wake([2]);
    const paused = waitForHookQueue(store, 2, (row) => row.parked === 1).then(() => 'paused');
    const sent = waitForDelivery(store, id).then(({ state }) => state);
    assert.equal(await Promise.race([paused, sent]), 'succeeded');
  },
);

forEachEngine('a hook queue that is stored under an origin which its hook has left follows it', async (store) => {
  await using receiver = await startReceiver();
  await insertTestHook(store, { id: 1, url: receiver.url });
  const id = await enqueueTestDelivery(store, { hookId: 1, url: 'http://127.0.0.1:1024/' });
  await using worker = startTestWorker(store);
  worker.wake();
  assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
  assert.equal((await waitForHookQueue(store, 1)).origin, new URL(receiver.url).origin);
});

forEachEngine('redeliveries that fail one after the other lengthen no pause of another owner', async (store) => {
  const url = `http://127.0.0.1:${await findFreePort()}/`;
  const asking = { hookId: 1, url, ownerId: 'owner-1' };
  const waiting = { hookId: 2, url, ownerId: 'owner-2' };
  for (const { hookId, ...hook } of [asking, waiting]) await insertTestHook(store, { id: hookId, ...hook });
  const ids = await enqueueMany(store, asking, 20);
  await using worker = startTestWorker(store);
  worker.wake();
  await waitForHookQueue(store, 1, (row) => row.parked === 1);
  for (const id of ids.slice(-10)) await (await worker.manual.redeliver(1, id))?.attempt;
  await enqueueMany(store, waiting, 1);
  worker.wake([2]);
  const { next_at_ms: untilMs } = await waitForHookQueue(store, 2, (row) => row.parked === 1);
  // The first pause takes five seconds. After ten more failed probes it would take five minutes.
  assert.ok(untilMs - realWorld.nowMs() < 60_000);
});

// Sequences in which five failures in a row come early, and fifteen successes in a row late.
for (const [share, seed] of [
  [0.2, 2345],
  [0.3, 1484],
] as const)
  forEachEngine(`a receiver that refuses ${100 * share} % at random gets every first attempt`, async (store) => {
    const random = createRandom(seed);
    const seen = new Set<unknown>();
    const { promise: allSeen, resolve } = Promise.withResolvers<string>();
    const count = 1500;
    await using receiver = await startReceiver(({ headers }, response) => {
      response.writeHead(random() < share ? 500 : 200).end();
      seen.add(headers['x-gitcode-delivery']);
      if (seen.size === count) resolve('all');
    });
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    await enqueueMany(store, { hookId: 1, url, ownerId: 'owner' }, count);
    await using worker = startTestWorker(store);
    worker.wake();
    // At one a second, as after a collapse, it would take twenty minutes.
    const timeout = new Promise<string>((end) => setTimeout(() => end(`${seen.size} of ${count}`), 240_000).unref());
    assert.equal(await Promise.race([allSeen, timeout]), 'all');
  });
