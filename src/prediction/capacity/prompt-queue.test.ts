import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPromptQueue } from './prompt-queue.ts';

test('a prompt counts as computed at one pace from its arrival to its first token', () => {
  const queue = createPromptQueue();
  assert.equal(queue.add(100, { tokens: 800, firstTokenMs: 300 }), 0);
  assert.deepEqual([queue.busyUntilMs(), queue.readPace(100)], [300, 4]);
  assert.equal(queue.readPace(250), 4);
  assert.deepEqual([queue.busyUntilMs(), queue.readPace(300)], [300, 0]);
});

test('prompts are computed one after the other', () => {
  const queue = createPromptQueue();
  queue.add(0, { tokens: 100, firstTokenMs: 100 });
  queue.add(50, { tokens: 300, firstTokenMs: 200 });
  assert.deepEqual([queue.busyUntilMs(), queue.readPace(50)], [200, 1]);
  assert.deepEqual([queue.busyUntilMs(), queue.readPace(100)], [200, 3]);
});

test('a prompt with the first token of one before it takes no time of its own', () => {
  const queue = createPromptQueue();
  queue.add(0, { tokens: 100, firstTokenMs: 100 });
  assert.equal(queue.add(10, { tokens: 60, firstTokenMs: 100 }), 60);
  assert.deepEqual([queue.busyUntilMs(), queue.readPace(50)], [100, 1]);
});
