import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { deliveryTo, openSender } from '../../../../test/support/webhooks/test-sender.ts';

const DEADLINE_MS = 200;

test('an attempt whose response arrived while the process did not run is accepted, although its deadline has passed', async () => {
  const word = new Int32Array(new SharedArrayBuffer(4));
  const receiver = new Worker(new URL('../../../../test/support/network/late-receiver.ts', import.meta.url), {
    workerData: word.buffer,
  });
  try {
    const [port] = await once(receiver, 'message');
    await using sender = openSender();
    const received = once(receiver, 'message');
    const attempt = sender.send({ ...deliveryTo(`http://127.0.0.1:${port}/hook`), deadlineMs: DEADLINE_MS });
    await received;
    // Blocks this thread, as if the process were suspended.
    Atomics.store(word, 0, 1);
    Atomics.notify(word, 0);
    Atomics.wait(word, 0, 1);
    Atomics.wait(word, 0, 2, 2 * DEADLINE_MS);
    assert.deepEqual((await attempt).outcome, { kind: 'accepted', status: 200 });
  } finally {
    await receiver.terminate();
  }
});
