import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freeMemory } from '../../memory/free-memory.ts';
import { MemoryBudget } from './memory-budget.ts';
import { SharedMemory } from './shared-memory.ts';

test('memory that several messages keep is counted once, until the last of them is done', () => {
  const budget = new MemoryBudget(1000, () => 0);
  const shared = new SharedMemory(budget.createAccount());
  const [first, second] = [new ArrayBuffer(100), new ArrayBuffer(10)];
  const releases = [first, first, second, first].map((memory) => shared.hold(memory));
  // The third message of the first read came after another read, and is counted again.
  assert.deepEqual([shared.bytes, budget.bytes], [210, 210]);
  releases[0]!();
  assert.equal(shared.bytes, 210);
  releases[1]!();
  assert.equal(shared.bytes, 110);
  releases[2]!();
  releases[3]!();
  assert.deepEqual([shared.bytes, budget.bytes], [0, 0]);
  shared.hold(first)();
  assert.equal(shared.bytes, 0);
});

test('memory that was freed before its last user is done is not counted any more', () => {
  const budget = new MemoryBudget(1000, () => 0);
  const shared = new SharedMemory(budget.createAccount());
  const bytes = Buffer.allocUnsafeSlow(100);
  const release = shared.hold(bytes.buffer);
  freeMemory(bytes);
  release();
  assert.deepEqual([shared.bytes, budget.bytes], [0, 0]);
});
