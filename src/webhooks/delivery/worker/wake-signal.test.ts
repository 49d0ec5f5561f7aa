import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWakeSignal } from './wake-signal.ts';

const LONG_MS = 600_000;

test('wait() ends at the next wake', async () => {
  const signal = createWakeSignal();
  const waiting = signal.wait(LONG_MS);
  signal.wake();
  assert.equal(await waiting, true);
});

test('wait() ends at once after a wake that came before it', async () => {
  const signal = createWakeSignal();
  signal.wake();
  assert.equal(await signal.wait(LONG_MS), true);
});

test('wait() ends without a wake after its time', async () => {
  assert.equal(await createWakeSignal().wait(1), false);
});

test('clear() forgets the wakes before it, and none after it', async () => {
  const signal = createWakeSignal();
  signal.wake();
  signal.clear();
  assert.equal(await signal.wait(1), false);
  signal.wake();
  assert.equal(await signal.wait(LONG_MS), true);
});
