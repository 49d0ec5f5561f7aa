import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callAtRate } from '../bench/support/call-at-rate.ts';

test('callAtRate() gives each call the time at which it was due, also behind a pause', async () => {
  const dueMs: number[] = [];
  const lateMs: number[] = [];
  await callAtRate({ perSecond: 1000, count: 60 }, (due, index) => {
    lateMs.push(performance.now() - due);
    dueMs.push(due);
    if (index === 5) pauseFor(30);
  });
  const gaps = dueMs.slice(1).map((due, index) => Math.round((due - dueMs[index]!) * 1000) / 1000);
  assert.deepEqual(new Set(gaps), new Set([1]));
  assert.ok(lateMs.every((late) => late >= 0));
  assert.ok(lateMs[6]! >= 28, 'the pause counts for the call behind it');
});

function pauseFor(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}
