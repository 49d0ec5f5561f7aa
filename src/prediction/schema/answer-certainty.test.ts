import assert from 'node:assert/strict';
import { test } from 'node:test';
import { certaintyOf } from './answer-certainty.ts';

test('the time per token of a short answer counts less than that of a long one', () => {
  assert.equal(certaintyOf('tpot', 3), 0.5);
  assert.ok(certaintyOf('tpot', 2) < 0.4);
  assert.ok(certaintyOf('tpot', 200) > 0.98);
});

test('a first token counts fully, and so does an answer of unknown length', () => {
  assert.equal(certaintyOf('ttft', 2), 1);
  for (const unknown of [undefined, Number.NaN, 0, 1]) assert.equal(certaintyOf('tpot', unknown), 1);
});
