import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runTrivet } from '../support/programs/run-trivet.ts';

test('the demo shows a prediction and a signed delivery, and no link that is dead at its end', async () => {
  const { code, stdout, stderr } = await runTrivet(['demo', '--exit']);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /demo-8b@1/);
  assert.match(stdout, /signature/i);
  assert.doesNotMatch(stdout, /\/setup/);
});
