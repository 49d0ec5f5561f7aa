import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Failure } from '../../errors.ts';
import { createClientLimits } from './client-limits.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function readLiveBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

function createLimits() {
  const clock = { ms: 0 };
  return { clock, limits: createClientLimits({ monotonicMs: () => clock.ms }) };
}

const isWait = (seconds: number) => (error: Failure) =>
  error.code === 'too_many' && error.details.retryAfterSeconds === seconds;

test('check() refuses a subject for the rest of the minute of its first failure, and no other', () => {
  const { clock, limits } = createLimits();
  for (let failure = 0; failure < 20; failure++) limits.countFailure('client', 'a');
  clock.ms = 50_000;
  assert.throws(() => limits.check('client', 'a'), isWait(10));
  limits.check('client', 'b');
  limits.check('grant', 'a');
  clock.ms = 60_000;
  limits.check('client', 'a');
});

test('checkAndCount() counts what succeeds too', () => {
  const { limits } = createLimits();
  for (let start = 0; start < 60; start++) limits.checkAndCount('device_start', 'a');
  assert.throws(() => limits.checkAndCount('device_start', 'a'), isWait(60));
});

test('takeBack() uncounts one attempt, and never more than were counted', () => {
  const { clock, limits } = createLimits();
  limits.takeBack('user_code', 'a');
  for (let attempt = 0; attempt < 10; attempt++) limits.countFailure('user_code', 'a');
  assert.throws(() => limits.check('user_code', 'a'), isWait(60));
  limits.takeBack('user_code', 'a');
  limits.check('user_code', 'a');
  clock.ms = 60_000;
  limits.takeBack('user_code', 'a');
  for (let attempt = 0; attempt < 10; attempt++) limits.countFailure('user_code', 'a');
  assert.throws(() => limits.check('user_code', 'a'), isWait(60));
});

test('countFailure() keeps a bounded number of subjects, however many there are', () => {
  const { limits } = createLimits();
  const before = readLiveBytes();
  for (let subject = 0; subject < 500_000; subject++) limits.countFailure('client', `app_${subject}|127.0.0.1`);
  // Keeping 500,000 windows takes more than 60 MB; 10,000 take about 1 MB.
  assert.ok(readLiveBytes() - before < 40_000_000);
  for (let failure = 0; failure < 20; failure++) limits.countFailure('client', 'last');
  assert.throws(() => limits.check('client', 'last'), isWait(60));
});

test('countFailure() keeps little of a long subject', () => {
  const { limits } = createLimits();
  const before = readLiveBytes();
  const rest = 'x'.repeat(15_000);
  for (let subject = 0; subject < 10_000; subject++) limits.countFailure('client', `app_${subject}${rest}|127.0.0.1`);
  // Untruncated subjects would take 150 MB.
  assert.ok(readLiveBytes() - before < 20_000_000);
  for (let failure = 0; failure < 20; failure++) limits.countFailure('client', 'last');
  assert.throws(() => limits.check('client', 'last'), isWait(60));
});
