import assert from 'node:assert/strict';
import { test } from 'node:test';
import { releaseBytes } from './release-bytes.ts';

test('releaseBytes() frees bytes that have a buffer of their own, and leaves parts of others alone', () => {
  const own = new Uint8Array(1_000_000);
  const part = new Uint8Array(1_000_000).subarray(1);
  const before = process.memoryUsage().arrayBuffers;
  releaseBytes(own);
  assert.ok(process.memoryUsage().arrayBuffers <= before - 1_000_000);
  assert.equal(own.byteLength, 0);
  releaseBytes(part);
  assert.equal(part.byteLength, 999_999);
});
