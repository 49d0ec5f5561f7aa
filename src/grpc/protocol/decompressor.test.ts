/** Large results are memory outside the heap: they are paced, and small ones do not wait for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { deflateSync, gzipSync } from 'node:zlib';
import type { MessageOwner } from './decompression-turns.ts';
import { type CompressedMessage, Decompressor, freeExpanded } from './decompressor.ts';

const MEBIBYTE = 1_048_576;
const compress = (bytes: number): CompressedMessage => ({
  bytes: gzipSync(Buffer.alloc(bytes)),
  encoding: 'gzip',
  maxBytes: 4 * MEBIBYTE,
});
const openConnection = (network: object = {}): MessageOwner => ({ network });

test('decompress() lets large messages wait for the time that those before them have taken, and small ones pass', async () => {
  let nowMs = 0;
  const decompressor = new Decompressor(() => nowMs);
  const [bomber, other] = [openConnection(), openConnection()];
  const order: string[] = [];
  const expand = async (owner: MessageOwner, name: string, bytes: number): Promise<void> => {
    await decompressor.decompress(owner, compress(bytes)).result;
    order.push(name);
  };
  await expand(bomber, 'first', 4 * MEBIBYTE);
  const second = expand(bomber, 'second', 4 * MEBIBYTE);
  const third = expand(other, 'large of another', 4 * MEBIBYTE);
  for (let call = 0; call < 3; call++) await expand(openConnection(), 'small', 100);
  assert.deepEqual(order, ['first', 'small', 'small', 'small']);
  nowMs = 64;
  await Promise.race([second, third]);
  assert.equal(order.length, 5);
  nowMs = 128;
  await Promise.all([second, third]);
});

test('decompress() counts a message that fails as large: it was expanded until then', async () => {
  let nowMs = 0;
  const decompressor = new Decompressor(() => nowMs);
  const owner = openConnection();
  const bomb = { ...compress(8 * MEBIBYTE), maxBytes: MEBIBYTE };
  await assert.rejects(decompressor.decompress(owner, bomb).result, /must be at most 1048576 bytes/);
  const next = decompressor.decompress(owner, compress(100)).result.then(() => 'done');
  // No event shows that it waits.
  assert.equal(await Promise.race([next, sleep(50, 'waits')]), 'waits');
  nowMs = 16;
  assert.equal(await next, 'done');
});

test('decompress() lets nothing wait for messages that cannot be expanded to much', async () => {
  const decompressor = new Decompressor(() => 0);
  const garbage = { ...compress(100), bytes: Buffer.from('x') };
  for (let message = 0; message < 20; message++) {
    assert.throws(
      () => decompressor.decompress(openConnection(), { ...garbage, encoding: 'nonsense' }),
      /got "nonsense"/,
    );
    await assert.rejects(
      decompressor.decompress(openConnection(), garbage).result,
      /not compressed as its encoding says/,
    );
  }
  assert.equal(
    (await decompressor.decompress(openConnection(), compress(MEBIBYTE)).result.then(String)).length,
    MEBIBYTE,
  );
});

test('decompress() lets a connection that sent a small message first pass no large one before its time', async () => {
  let nowMs = 0;
  const decompressor = new Decompressor(() => nowMs);
  await decompressor.decompress(openConnection(), compress(4 * MEBIBYTE)).result;
  const sly = openConnection();
  await decompressor.decompress(sly, compress(100)).result;
  const large = decompressor.decompress(sly, compress(4 * MEBIBYTE)).result.then(() => 'done');
  // No event shows that it has not begun: without the pacing it would be done in a few milliseconds.
  assert.equal(await Promise.race([large, sleep(50, 'waits')]), 'waits');
  nowMs = 64;
  assert.equal(await large, 'done');
});

test('decompress() gives each network its turn, however many connections another has', async () => {
  let nowMs = 0;
  const decompressor = new Decompressor(() => nowMs);
  const [crowd, answered] = [{}, [] as string[]];
  const expand = (name: string, network: object) =>
    decompressor.decompress(openConnection(network), compress(4 * MEBIBYTE)).result.then(() => answered.push(name));
  const all = Array.from({ length: 20 }, () => expand('crowd', crowd));
  all.push(expand('other', {}));
  while (answered.length < all.length) {
    nowMs += 64;
    // The decompressor checks its clock again on a timer.
    await sleep(1);
  }
  await Promise.all(all);
  assert.ok(answered.indexOf('other') < 5, String(answered.indexOf('other')));
});

/** How many connections are visited for one more message while this many connections wait. */
function countLooks(waiting: number): number {
  let looks = 0;
  const network = {};
  const open = (): MessageOwner => ({
    get network() {
      looks += 1;
      return network;
    },
  });
  const decompressor = new Decompressor(() => 0);
  const message = { ...compress(MEBIBYTE), encoding: 'gzip' };
  const begin = () => {
    const pending = decompressor.decompress(open(), message);
    pending.result.catch(() => {});
    return () => pending.cancel();
  };
  const cancels = Array.from({ length: waiting }, begin);
  const before = looks;
  cancels.push(begin());
  for (const cancel of cancels.slice(-10)) cancel();
  return looks - before;
}

test('decompress() looks at as many connections when 10,000 wait as when 100 do', () => {
  assert.equal(countLooks(10_000), countLooks(100));
});

test('decompress() begins the next message of a connection whose first one was cancelled', async () => {
  const decompressor = new Decompressor(() => 0);
  const owner = openConnection();
  const large = decompressor.decompress(openConnection(), compress(4 * MEBIBYTE));
  const [first, second] = [4 * MEBIBYTE, 100].map((bytes) => decompressor.decompress(owner, compress(bytes)));
  first!.cancel();
  await assert.rejects(first!.result, /The call has ended/);
  assert.equal((await second!.result).length, 100);
  await large.result;
});

/** Overwrites the length field of a gzip message, its last four bytes. */
function claim(message: CompressedMessage, bytes: number): CompressedMessage {
  const changed = Buffer.from(message.bytes);
  changed.writeUInt32LE(bytes, changed.length - 4);
  return { ...message, bytes: changed };
}

test('decompress() gives a message that says how long it becomes memory of its own, which can be freed', async () => {
  const { result } = new Decompressor(() => 0).decompress(openConnection(), compress(MEBIBYTE));
  const bytes = await result;
  assert.equal(bytes.length, MEBIBYTE);
  assert.ok(bytes.buffer.byteLength - MEBIBYTE < 64, `${bytes.buffer.byteLength} bytes`);
  freeExpanded(bytes);
  assert.equal(bytes.length, 0);
});

test('decompress() expands a deflate message into one piece if the one before it became as long', async () => {
  let nowMs = 0;
  const decompressor = new Decompressor(() => nowMs);
  const owner = openConnection();
  const message = { bytes: deflateSync(Buffer.alloc(MEBIBYTE)), encoding: 'deflate', maxBytes: 4 * MEBIBYTE };
  for (let call = 0; call < 2; call++) {
    const { length, buffer } = await decompressor.decompress(owner, message).result;
    assert.equal(length, MEBIBYTE);
    // Several pieces are copied into memory of exactly their length.
    assert.equal(buffer.byteLength - length, call);
    nowMs += 16;
  }
});

test('decompress() takes a message to become as long as the last one, not as the longest', async () => {
  let nowMs = 0;
  const decompressor = new Decompressor(() => nowMs);
  const owner = openConnection();
  const expand = (bytes: Buffer) =>
    decompressor.decompress(owner, { bytes: deflateSync(bytes), encoding: 'deflate', maxBytes: 4 * MEBIBYTE }).result;
  await expand(Buffer.alloc(4 * MEBIBYTE));
  nowMs = 64;
  // Its memory is sized by the previous message, and it is paced for that size.
  const small = Buffer.from(Array.from({ length: 4096 }, (_, index) => index % 251));
  await expand(small);
  // The clock stands still, so a message that counted as large would wait.
  for (let call = 0; call < 3; call++) assert.deepEqual(await expand(small), small);
});

test('freeExpanded() leaves memory that other bytes may share', async () => {
  const { result } = new Decompressor(() => 0).decompress(openConnection(), compress(100));
  const bytes = await result;
  freeExpanded(bytes);
  assert.deepEqual(bytes, Buffer.alloc(100));
});

const lies: [what: string, said: number][] = [
  ['nothing', 0],
  ['more than any message may have', 0xffffffff],
];
for (const [what, said] of lies)
  test(`decompress() refuses a message that says that it becomes ${what}, and goes on`, async () => {
    const decompressor = new Decompressor(() => 0);
    const owner = openConnection();
    const lie = claim(compress(100), said);
    await assert.rejects(decompressor.decompress(owner, lie).result, /not compressed as its encoding says/);
    assert.equal((await decompressor.decompress(owner, compress(200)).result).length, 200);
  });
