import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { testInZones } from '../../../../test/support/basics/time-zones.ts';
import { MAX_ATTEMPTS, parseRetryAfterMs, planRetryMs } from './retry-policy.ts';

const HOUR_MS = 3_600_000;

test('ten attempts are made: at once, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h', () => {
  const waits = Array.from({ length: MAX_ATTEMPTS }, (_, index) => planRetryMs({ attempt: index + 1, random: 0.5 }));
  const hours = [2, 5, 10, 14, 20, 24].map((hour) => hour * HOUR_MS);
  assert.deepEqual(waits, [5000, 300_000, 1_800_000, ...hours, undefined]);
});

test('a wait is spread by a fifth to both sides', () => {
  assert.equal(planRetryMs({ attempt: 2, random: 0 }), 240_000);
  assert.equal(planRetryMs({ attempt: 2, random: 0.999999 }), 360_000);
});

const wishes: [title: string, attempt: number, retryAfterMs: number, expected: number][] = [
  ['less than planned changes nothing', 2, 1000, 300_000],
  ['more than planned is honoured', 2, 400_000, 400_000],
  ['more than twice the plan is cut', 2, HOUR_MS, 600_000],
  ['more than an hour beyond the plan is cut', 6, 100 * HOUR_MS, 11 * HOUR_MS],
];
for (const [title, attempt, retryAfterMs, expected] of wishes)
  test(`Retry-After: ${title}`, () => assert.equal(planRetryMs({ attempt, random: 0.5, retryAfterMs }), expected));

test('whatever is asked for, a wait stays between the plan and twice the plan', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: MAX_ATTEMPTS - 1 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      fc.double({ min: 0, noNaN: true }),
      (attempt, random, retryAfterMs) => {
        const planned = planRetryMs({ attempt, random })!;
        const wait = planRetryMs({ attempt, random, retryAfterMs })!;
        assert.ok(wait >= planned && wait <= 2 * planned && wait <= planned + HOUR_MS);
      },
    ),
  );
});

const nowMs = Date.parse('2026-01-01T00:00:00Z');
const values: [value: string | undefined, expected: number | undefined][] = [
  [undefined, undefined],
  ['', undefined],
  ['120', 120_000],
  [' 5 ', 5000],
  ['-5', undefined],
  ['1e9', undefined],
  ['99999999999999999999', undefined],
  ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
  ['Thursday, 01-Jan-26 00:01:00 GMT', 60_000],
  ['Thu Jan  1 00:01:00 2026', 60_000],
  ['Wed, 31 Dec 2025 23:00:00 GMT', 0],
  ['soon', undefined],
  ['1; DROP TABLE', undefined],
];
testInZones('parseRetryAfterMs() reads seconds and the three forms of an HTTP date', () => {
  for (const [value, expected] of values) assert.equal(parseRetryAfterMs(value, nowMs), expected, value);
});
