import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freeMemory, hasOwnMemory } from './free-memory.ts';
import { openCollector } from './garbage.ts';

test('freeMemory() frees what a buffer has for itself, without a collection', () => {
  // Memory that other code frees meanwhile would count. A second collection waits for the memory that the first frees in another thread.
  const { collectAll } = openCollector();
  for (let round = 0; round < 2; round++) collectAll();
  const before = process.memoryUsage().arrayBuffers;
  const bytes = Buffer.allocUnsafeSlow(10_000_000);
  assert.ok(process.memoryUsage().arrayBuffers - before >= 10_000_000);
  freeMemory(bytes);
  assert.ok(process.memoryUsage().arrayBuffers - before < 1_000_000);
  assert.equal(bytes.length, 0);
});

test('hasOwnMemory() tells a buffer from a part of one', () => {
  const bytes = Buffer.allocUnsafeSlow(100);
  assert.ok(hasOwnMemory(bytes));
  assert.ok(!hasOwnMemory(bytes.subarray(0, 99)));
  assert.ok(!hasOwnMemory(bytes.subarray(1)));
  assert.ok(!hasOwnMemory(Buffer.from('a part of the pool of Node')));
  freeMemory(bytes);
  assert.ok(!hasOwnMemory(bytes));
});

test('freeMemory() leaves a part of a buffer as it is', () => {
  const whole = Buffer.allocUnsafeSlow(100).fill('w');
  for (const part of [
    whole.subarray(0, 99),
    whole.subarray(1),
    Buffer.from('a part of the pool of Node'),
    Buffer.alloc(0),
  ])
    assert.ok(!freeMemory(part));
  assert.equal(String(whole), 'w'.repeat(100));
  assert.ok(freeMemory(whole));
  assert.ok(!freeMemory(whole));
});
