import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPromptQueue } from './prompt-queue.ts';

test('a prompt counts as computed at one pace from its arrival to its first token', () => {
  const queue = createPromptQueue();
  assert.equal(queue.add(100, { tokens: 800, firstTokenMs: 300 }), 0);
  assert.deepEqual([queue.countTokens(100), queue.readPace(100)], [800, 4]);
  assert.deepEqual([queue.countTokens(250), queue.readPace(250)], [200, 4]);
  assert.deepEqual([queue.countTokens(300), queue.readPace(300)], [0, 0]);
});

test('prompts are computed one after the other', () => {
  const queue = createPromptQueue();
  queue.add(0, { tokens: 100, firstTokenMs: 100 });
  queue.add(50, { tokens: 300, firstTokenMs: 200 });
  assert.deepEqual([queue.countTokens(50), queue.readPace(50)], [350, 1]);
  assert.deepEqual([queue.countTokens(100), queue.readPace(100)], [300, 3]);
});

test('a prompt with the first token of one before it takes no time of its own, and counts until then', () => {
  const queue = createPromptQueue();
  queue.add(0, { tokens: 100, firstTokenMs: 100 });
  assert.equal(queue.add(10, { tokens: 60, firstTokenMs: 100 }), 60);
  assert.deepEqual([queue.countTokens(50), queue.readPace(50)], [110, 1]);
  assert.equal(queue.countTokens(100), 0);
});
