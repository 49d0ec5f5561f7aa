/** Reads and writes leave few objects in the old generation, or the whole heap would be collected more often under load. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measureInWorker } from '../../../test/support/store/old-memory-cases.ts';

test('a write and a cached read leave little in old memory', async () => {
  const bytes = await measureInWorker('store');
  assert.ok(bytes < 100, `${bytes} bytes a call`);
});
