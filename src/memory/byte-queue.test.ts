import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BlockPool } from './block-pool.ts';
import { ByteQueue } from './byte-queue.ts';

const LARGE = 100_000;

function fill(queue: ByteQueue, byte: number, bytes = LARGE): void {
  for (let pushed = 0; pushed < bytes; pushed += 1000) queue.push(Buffer.alloc(1000, byte));
}

test('the block of a message is used again once the message is', () => {
  const pool = new BlockPool();
  const first = new ByteQueue(pool);
  fill(first, 1);
  const message = first.take(LARGE);
  const other = new ByteQueue(pool);
  fill(other, 2);
  assert.notEqual(other.peek(1).buffer, message.buffer);
  assert.ok(message.every((byte) => byte === 1));
  first.recycle();
  const next = new ByteQueue(pool);
  fill(next, 3);
  assert.equal(next.peek(1).buffer, message.buffer);
  assert.ok(next.take(LARGE).every((byte) => byte === 3));
});

test('blocks that were outgrown, or whose message did not come, are used again', () => {
  const pool = new BlockPool();
  const queue = new ByteQueue(pool);
  fill(queue, 1);
  const { buffer } = queue.peek(1);
  queue.clear();
  const next = new ByteQueue(pool);
  fill(next, 2, 40_000);
  const outgrown = next.peek(1).buffer;
  fill(next, 2, 60_000);
  assert.equal(next.peek(1).buffer, buffer);
  assert.equal(pool.take(40_000).buffer, outgrown);
});

test('a block with two messages is not used again', () => {
  const pool = new BlockPool();
  const queue = new ByteQueue(pool);
  fill(queue, 1);
  const [first, second] = [queue.take(LARGE / 2), queue.take(LARGE / 2)];
  queue.recycle();
  const next = new ByteQueue(pool);
  fill(next, 2);
  assert.notEqual(next.peek(1).buffer, first.buffer);
  assert.ok([first, second].every((message) => message.every((byte) => byte === 1)));
});

test('messages that are used one after the other need one block, though a part of the next is always there', () => {
  const queue = new ByteQueue(new BlockPool());
  fill(queue, 0);
  const { buffer } = queue.peek(1);
  for (let round = 1; round < 100; round++) {
    const message = queue.take(90_000);
    assert.equal(message[0], round - 1);
    queue.recycle();
    queue.push(Buffer.alloc(90_000, round));
    assert.equal(queue.peek(1).buffer, buffer);
    assert.deepEqual([queue.length, queue.peek(10_001).at(-1)], [LARGE, round]);
    queue.drop(10_000);
    queue.push(Buffer.alloc(10_000, round));
  }
});

test('a block that is outgrown while a message in it is used is used again afterwards', () => {
  const pool = new BlockPool();
  const queue = new ByteQueue(pool);
  fill(queue, 1);
  const message = queue.take(LARGE / 2);
  fill(queue, 2);
  assert.notEqual(queue.peek(1).buffer, message.buffer);
  assert.notEqual(pool.take(LARGE).buffer, message.buffer);
  assert.ok(message.every((byte) => byte === 1));
  queue.recycle();
  assert.equal(pool.take(LARGE).buffer, message.buffer);
});

test('a pool keeps few bytes', () => {
  const pool = new BlockPool();
  const blocks = Array.from({ length: 20 }, () => pool.take(4_194_309));
  for (const block of blocks) pool.giveBack(block);
  const again = new Set(Array.from({ length: 20 }, () => pool.take(4_194_309)));
  assert.ok(blocks.filter((block) => again.has(block)).length <= 4);
});

test('large blocks that no one takes any more leave their place in a pool to others', () => {
  const pool = new BlockPool();
  for (const bytes of [4_194_304, 2_097_152, 1_048_576, 524_288, 262_144, 131_072])
    for (const block of Array.from({ length: 4 }, () => pool.take(bytes))) pool.giveBack(block);
  const blocks = Array.from({ length: 200 }, () => pool.take(60_000));
  for (const block of blocks) pool.giveBack(block);
  const again = new Set(Array.from({ length: 200 }, () => pool.take(60_000)));
  assert.equal(blocks.filter((block) => again.has(block)).length, 200);
});

test('bytes that are dropped part by part leave the rest, and at last the block', () => {
  const pool = new BlockPool();
  const queue = new ByteQueue(pool);
  fill(queue, 1);
  fill(queue, 2, 1000);
  const { buffer } = queue.peek(1);
  queue.drop(LARGE);
  assert.deepEqual([queue.length, queue.peek(1)[0], queue.heldBytes], [1000, 2, buffer.byteLength]);
  queue.drop(1000);
  assert.deepEqual([queue.length, queue.heldBytes], [0, 0]);
  assert.equal(pool.take(LARGE).buffer, buffer);
});
