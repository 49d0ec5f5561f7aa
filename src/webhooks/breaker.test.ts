import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  allowedAttempts,
  type Breaker,
  beginAttempt,
  CLOSED_BREAKER,
  ORIGIN_BREAKER,
  pauseMs,
  recordFailure,
  recordSuccess,
  restoreBreaker,
} from './breaker.ts';

const at = (nowMs: number) => ({ nowMs, random: 0.5 });

function failTimes(times: number, nowMs: number, from: Breaker = CLOSED_BREAKER): Breaker {
  let breaker = from;
  for (let count = 0; count < times; count += 1) breaker = recordFailure(breaker, ORIGIN_BREAKER, at(nowMs));
  return breaker;
}

test('it opens after five failures in a row, and a success between starts the count anew', () => {
  assert.equal(allowedAttempts(failTimes(4, 0), 0), Number.POSITIVE_INFINITY);
  assert.equal(failTimes(4, 0, recordSuccess(failTimes(4, 0))).state, 'closed');
  assert.equal(allowedAttempts(failTimes(5, 0), 0), 0);
});

test('while it is open nothing goes; after the pause one probe goes, and one only', () => {
  const open = failTimes(5, 0);
  assert.equal(allowedAttempts(open, 4999), 0);
  assert.equal(allowedAttempts(open, 5000), 1);
  const probing = beginAttempt(open, 5000);
  assert.equal(probing.state, 'probing');
  assert.equal(allowedAttempts(probing, 5000), 1);
});

test('a failed probe doubles the pause, up to five minutes', () => {
  let breaker = failTimes(5, 0);
  const pauses: number[] = [];
  for (let count = 0; count < 9; count += 1) {
    pauses.push(breaker.untilMs);
    breaker = recordFailure(beginAttempt({ ...breaker, untilMs: 0 }, 0), ORIGIN_BREAKER, at(0));
  }
  assert.deepEqual(pauses, [5000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]);
});

test('after a good probe it lets 1, 2, 4 and 8 go, then all', () => {
  let breaker = recordSuccess(beginAttempt(failTimes(5, 0), 5000));
  const seen = new Set<number>();
  for (let count = 0; count < 1 + 2 + 4 + 8; count += 1) {
    seen.add(allowedAttempts(breaker, 5000));
    breaker = recordSuccess(breaker);
  }
  assert.deepEqual([...seen], [1, 2, 4, 8]);
  assert.deepEqual(breaker, CLOSED_BREAKER);
});

test('a failure on the ramp opens it again', () => {
  const ramping = recordSuccess(beginAttempt(failTimes(5, 0), 5000));
  assert.equal(recordFailure(ramping, ORIGIN_BREAKER, at(6000)).state, 'open');
});

test('what was under way when it opened changes nothing', () => {
  const open = failTimes(5, 0);
  assert.equal(recordSuccess(open), open);
  assert.equal(recordFailure(open, ORIGIN_BREAKER, at(4000)), open);
});

test('a breaker comes back from what its row tells', () => {
  assert.equal(restoreBreaker(4, 9, ORIGIN_BREAKER).state, 'closed');
  const restored = restoreBreaker(5, 9000, ORIGIN_BREAKER);
  assert.equal(allowedAttempts(restored, 8999), 0);
  assert.equal(allowedAttempts(restored, 9000), 1);
});

test('a pause is always within a fifth of the plan', () => {
  fc.assert(
    fc.property(fc.nat({ max: 1000 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (failures, random) => {
      const pause = pauseMs(failures, ORIGIN_BREAKER, random);
      assert.ok(pause >= 4000 && pause <= 360_000);
    }),
  );
});
