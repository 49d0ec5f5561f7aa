/** Large results are memory outside the heap: they are paced, and small ones do not wait for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { type Expansion, Expansions } from './expansions.ts';

const MEBIBYTE = 1_048_576;
const compress = (bytes: number): Expansion => ({
  bytes: gzipSync(Buffer.alloc(bytes)),
  encoding: 'gzip',
  maxBytes: 4 * MEBIBYTE,
  isEnded: () => false,
});

test('expand() lets large messages wait for the time that those before them have taken, and small ones pass', async () => {
  let nowMs = 0;
  const expansions = new Expansions(() => nowMs);
  const [bomber, other] = [{}, {}];
  const order: string[] = [];
  const expand = async (owner: object, name: string, bytes: number): Promise<void> => {
    await expansions.expand(owner, compress(bytes));
    order.push(name);
  };
  await expand(bomber, 'first', 4 * MEBIBYTE);
  const second = expand(bomber, 'second', 4 * MEBIBYTE);
  const third = expand(other, 'large of another', 4 * MEBIBYTE);
  for (let call = 0; call < 3; call++) await expand({}, 'small', 100);
  assert.deepEqual(order, ['first', 'small', 'small', 'small']);
  nowMs = 64;
  await Promise.race([second, third]);
  assert.equal(order.length, 5);
  nowMs = 128;
  await Promise.all([second, third]);
});

test('expand() counts a message that fails as large: it was expanded until then', async () => {
  let nowMs = 0;
  const expansions = new Expansions(() => nowMs);
  const owner = {};
  const bomb = { ...compress(8 * MEBIBYTE), maxBytes: MEBIBYTE };
  await assert.rejects(expansions.expand(owner, bomb), /must be at most 1048576 bytes/);
  const next = expansions.expand(owner, compress(100)).then(() => 'done');
  // That it waits has no event.
  assert.equal(await Promise.race([next, sleep(50, 'waits')]), 'waits');
  nowMs = 16;
  assert.equal(await next, 'done');
});
