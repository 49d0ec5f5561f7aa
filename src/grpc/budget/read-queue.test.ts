import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSocketPair } from '../../../test/support/network/socket-pair.ts';
import { ReadQueue } from './read-queue.ts';
import { Share, Turns } from './turns.ts';

test('a read is freed when its use throws', async () => {
  using pair = await openSocketPair();
  const used: Buffer[] = [];
  const { promise: fault, resolve } = Promise.withResolvers<void>();
  const queue = new ReadQueue({
    socket: pair.accepted,
    share: new Share(new Turns(performance.now.bind(performance)), () => {}),
    countGarbage: () => {},
    onEnd: () => {},
    use(chunk) {
      used.push(chunk);
      throw new Error('not a frame');
    },
    onPause: () => {},
    onFault() {
      queue.stop();
      resolve();
    },
  });
  pair.client.write(Buffer.alloc(1000, 'a'));
  await fault;
  assert.equal(used[0]?.length, 0);
});

test('a read of which a part waits for its turn is freed when its connection stops', async () => {
  using pair = await openSocketPair();
  const used: Buffer[] = [];
  const { promise: paused, resolve } = Promise.withResolvers<void>();
  const share = new Share(new Turns(performance.now.bind(performance)), () => {});
  const queue = new ReadQueue({
    socket: pair.accepted,
    share,
    countGarbage: () => {},
    onEnd: () => {},
    use(chunk) {
      used.push(chunk);
      share.spend(1_000_000);
      return chunk.subarray(1);
    },
    onPause: resolve,
    onFault: () => {},
  });
  pair.client.write(Buffer.alloc(1000, 'a'));
  await paused;
  assert.equal(used[0]?.length, 1000);
  queue.stop();
  assert.equal(used[0]?.length, 0);
});
