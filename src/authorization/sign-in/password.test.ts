import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countHashes, isPassword } from './password.ts';

// The process must not have refused anyone before, so this test stands alone in its file.
test('the first password of an unknown login that a process refuses costs one hash', async () => {
  const caller = { key: '192.0.2.1', isKnown: false };
  assert.equal(await isPassword(undefined, 'correct horse battery', caller), false);
  assert.equal(countHashes(), 1);
});
