import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { compileKernels } from '../../../scripts/compile-kernels.ts';
import { findKernelModule } from './kernel.ts';

test('the committed WebAssembly is what its source compiles to', async () => {
  for (const [path, bytes] of await compileKernels()) {
    assert.ok(readFileSync(path).equals(bytes), `${path} is stale; run: npm run generate:wasm`);
  }
});

test('findKernelModule() compiles once', () => {
  assert.ok(findKernelModule('evaluate') !== undefined);
  assert.equal(findKernelModule('evaluate'), findKernelModule('evaluate'));
});
