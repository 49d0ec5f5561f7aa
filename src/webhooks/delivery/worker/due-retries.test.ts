/** A retry becomes due without a change of its hook queue's row, while first attempts of the hook keep the worker busy. */
import assert from 'node:assert/strict';
import { type Receiver, startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  commitTestDelivery,
  enqueueTestDelivery,
  insertTestHook,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { createTestWorker } from '../../../../test/support/webhooks/delivery-worker.ts';
import { type Store, statement } from '../../../database/store.ts';
import { realWorld } from '../../../world.ts';
import { findHookById } from '../../hooks/hook-store.ts';

const RETRY_BODY = Buffer.from('{"retry":true}');

/** A delivery that was attempted once, and whose next attempt is due in 300 ms, after the first read of the hook queue. */
async function insertRetry(store: Store, url: string): Promise<void> {
  const id = await enqueueTestDelivery(store, { hookId: 1, url, body: RETRY_BODY });
  const retrySql = statement(
    'test-retry',
    'UPDATE deliveries SET lane = 1, attempts = 1, due_at_ms = $2 WHERE id = $1',
  );
  await store.write(retrySql, [id, realWorld.nowMs() + 300]);
}

/** A receiver that answers its oldest open request at each call of `answer`, and all of them when it is disposed. */
async function startHeldReceiver(): Promise<{ receiver: Receiver; answer: () => void } & AsyncDisposable> {
  const answers: (() => void)[] = [];
  let isHolding = true;
  const receiver = await startReceiver((_, response) => {
    if (isHolding) answers.push(() => response.end('ok'));
    else response.end('ok');
  });
  const end = async (): Promise<void> => {
    isHolding = false;
    for (const answer of answers) answer();
    await receiver[Symbol.asyncDispose]();
  };
  return { receiver, answer: () => answers.shift()?.(), [Symbol.asyncDispose]: end };
}

/** How many requests came before the retry; undefined before it has come. */
function countBeforeRetry({ received }: Receiver): number | undefined {
  const index = received.findIndex(({ body }) => body.equals(RETRY_BODY));
  return index === -1 ? undefined : index;
}

forEachEngine('a retry that becomes due does not wait for the many first attempts of its hook', async (store) => {
  await using worker = createTestWorker(store);
  await using held = await startHeldReceiver();
  const { receiver, answer } = held;
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  for (let count = 0; count < 200; count += 1) await enqueueTestDelivery(store, { hookId: 1, url });
  await insertRetry(store, url);
  worker.start();
  worker.wake();
  // The lanes are read again once a second, so the time between answers decides how many first attempts come before the retry.
  const answering = setInterval(answer, 50);
  await receiver.waitFor(60);
  clearInterval(answering);
  assert.notEqual(countBeforeRetry(receiver), undefined, 'sixty first attempts went before the retry');
});

forEachEngine('a retry that becomes due does not wait until few deliveries of its hook are enqueued', async (store) => {
  await using worker = createTestWorker(store);
  await using held = await startHeldReceiver();
  const { receiver, answer } = held;
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  const hook = await findHookById(store, 1);
  for (let count = 0; count < 6; count += 1) await enqueueTestDelivery(store, { hookId: 1, url });
  await insertRetry(store, url);
  worker.start();
  worker.wake();
  await receiver.waitFor(4);
  // Too large to be taken without a read, so each is read; with more than four in memory, only the lane of first attempts.
  const body = Buffer.from(JSON.stringify('x'.repeat(20_000)));
  for (let count = 5; countBeforeRetry(receiver) === undefined && count < 30; count += 1) {
    const { committed, versions } = await commitTestDelivery(store, hook!, { hookId: 1, url, body });
    worker.takeCommitted([committed], versions);
    answer();
    await receiver.waitFor(count);
    // More often than the second after which a lane is read again.
    await realWorld.sleep(300);
  }
  const count = countBeforeRetry(receiver);
  assert.ok(count !== undefined && count < 25, `${count} first attempts went before the retry`);
});
