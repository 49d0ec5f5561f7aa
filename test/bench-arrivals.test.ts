import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countMissing, findArrival, listFirstArrivals, takePercentile } from '../bench/webhooks/arrivals.ts';
import { startReceiver } from '../bench/webhooks/processes.ts';

async function deliver(port: number, uuid: string): Promise<void> {
  await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers: { 'x-gitcode-delivery': uuid }, body: 'x' });
}

test('waitFor() counts a delivery that comes twice once', { timeout: 30_000 }, async () => {
  const receiver = await startReceiver();
  try {
    const [port = 0] = receiver.ports;
    for (const uuid of ['a', 'a', 'a']) await deliver(port, uuid);
    const waiting = receiver.waitFor(2).then(() => 'two have come');
    assert.equal((await receiver.report()).length, 3);
    assert.equal(await Promise.race([waiting, receiver.waitFor(1).then(() => 'one has come')]), 'one has come');
    await deliver(port, 'b');
    assert.equal(await waiting, 'two have come');
  } finally {
    receiver.stop();
  }
});

test('waitFor() says how many deliveries have come when no more of them come', { timeout: 30_000 }, async () => {
  const receiver = await startReceiver({ lostAfterMs: 50 });
  try {
    await deliver(receiver.ports[0]!, 'a');
    assert.equal(await receiver.waitFor(2), 1);
  } finally {
    receiver.stop();
  }
});

test('a delivery that never came is infinitely late and counts as missing, and a repeated one came the first time', () => {
  const arrivals = listFirstArrivals([
    { uuid: 'a', atMs: 5, isSlow: false },
    { uuid: 'b', atMs: 8, isSlow: false },
    { uuid: 'a', atMs: 9, isSlow: false },
  ]);
  const delays = ['lost', 'a', undefined, 'b'].map((uuid) => findArrival(arrivals, uuid));
  assert.deepEqual(delays, [Infinity, 5, Infinity, 8]);
  assert.equal(countMissing(delays), 2);
  assert.deepEqual(
    [0, 0.49, 0.99].map((share) => takePercentile(delays, share)),
    [5, 8, Infinity],
  );
});
