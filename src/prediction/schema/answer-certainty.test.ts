import assert from 'node:assert/strict';
import { test } from 'node:test';
import { certaintyOf, findTpot } from './answer-certainty.ts';

test('the time per token of a short answer counts less than that of a long one', () => {
  assert.equal(certaintyOf('tpot', 3), 0.5);
  assert.ok(certaintyOf('tpot', 2) < 0.4);
  assert.ok(certaintyOf('tpot', 200) > 0.98);
});

test('a first token counts fully, and so does an answer of unknown length', () => {
  assert.equal(certaintyOf('ttft', 2), 1);
  for (const unknown of [undefined, Number.NaN, 0]) assert.equal(certaintyOf('tpot', unknown), 1);
});

test('an answer of one token has no time per token', () => {
  assert.equal(certaintyOf('tpot', 1), 0);
  assert.equal(findTpot(12, 1), undefined);
  for (const others of [undefined, Number.NaN, 0, 2]) assert.equal(findTpot(12, others), 12);
});
