import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRandomSource } from './world.ts';

test('random bytes never repeat, whether or not the pool is filled again, and belong to their caller', () => {
  const source = createRandomSource();
  const seen = new Set<string>();
  const first = source(16);
  const kept = Buffer.from(first).toString('hex');
  for (let i = 0; i < 5000; i++) {
    const bytes = source(16);
    assert.equal(bytes.length, 16);
    assert.equal(bytes.buffer.byteLength, 16);
    seen.add(Buffer.from(bytes).toString('hex'));
  }
  assert.equal(seen.size, 5000);
  assert.equal(Buffer.from(first).toString('hex'), kept);
  assert.equal(source(4096).length, 4096);
});
