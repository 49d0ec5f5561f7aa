import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Outcome, toOutcome } from './attempt-outcome.ts';
import { type NextStep, nextStep } from './delivery.ts';
import { DISABLE_AFTER_MS, findDisableReason, type HookHealth, updateHealth } from './disable-failing-hook.ts';

const moment = { nowMs: 1000, random: 0.5 };
const refused: Outcome = { kind: 'refused', status: 500 };
const silence: Outcome = { kind: 'unreachable', reason: 'x', stage: 'response' };

const steps: [title: string, outcome: Outcome, attempt: number, expected: NextStep][] = [
  ['ends when accepted', { kind: 'accepted', status: 204 }, 1, { state: 'succeeded' }],
  ['ends when accepted at last', { kind: 'accepted', status: 200 }, 10, { state: 'succeeded' }],
  ['waits after a refusal', refused, 1, { state: 'pending', dueAtMs: 6000 }],
  ['waits longer each time', refused, 2, { state: 'pending', dueAtMs: 301_000 }],
  ['waits after no answer', silence, 1, { state: 'pending', dueAtMs: 6000 }],
  ['waits as asked', { ...refused, retryAfterMs: 8000 }, 1, { state: 'pending', dueAtMs: 9000 }],
  ['gives up after ten refusals', refused, 10, { state: 'dead' }],
  ['gives up after ten times no answer', silence, 10, { state: 'dead' }],
  ['gives up when the receiver is gone', { kind: 'gone', status: 410 }, 1, { state: 'dead' }],
  ['stops at a forbidden address', { kind: 'blocked' }, 1, { state: 'blocked' }],
];
for (const [title, outcome, attempt, expected] of steps)
  test(`nextStep() ${title}`, () => assert.deepEqual(nextStep(outcome, { ...moment, attempt }), expected));

const kinds: [status: number, kind: Outcome['kind']][] = [
  [200, 'accepted'],
  [299, 'accepted'],
  [301, 'refused'],
  [307, 'refused'],
  [400, 'refused'],
  [404, 'refused'],
  [410, 'gone'],
  [429, 'refused'],
  [503, 'refused'],
  [999, 'refused'],
];
for (const [status, kind] of kinds)
  test(`toOutcome() of ${status} is ${kind}`, () => assert.equal(toOutcome(status).kind, kind));

test('one success resets the failures of a hook', () => {
  const failing = updateHealth({ fails: 3, failingSinceMs: 50 }, refused, 100);
  assert.deepEqual(failing, { fails: 4, failingSinceMs: 50 });
  assert.deepEqual(updateHealth(failing, { kind: 'accepted', status: 200 }, 200), { fails: 0, failingSinceMs: null });
  assert.deepEqual(updateHealth({ fails: 0, failingSinceMs: null }, refused, 100), { fails: 1, failingSinceMs: 100 });
});

const disabling: [title: string, health: HookHealth, outcome: Outcome, expected: RegExp | undefined][] = [
  [
    'long enough and often enough',
    { fails: 20, failingSinceMs: 0 },
    refused,
    /^All 20 attempts since 1970-01-01T00:00:00.000Z have failed$/,
  ],
  ['long enough but not often', { fails: 19, failingSinceMs: 0 }, refused, undefined],
  ['often but not long enough', { fails: 500, failingSinceMs: 1 }, refused, undefined],
  ['gone at once', { fails: 1, failingSinceMs: DISABLE_AFTER_MS }, { kind: 'gone', status: 410 }, /410 Gone/],
];
for (const [title, health, outcome, expected] of disabling)
  test(`findDisableReason() ${expected ? 'disables' : 'waits'}: ${title}`, () => {
    const reason = findDisableReason(health, outcome, DISABLE_AFTER_MS);
    if (expected === undefined) assert.equal(reason, undefined);
    else assert.match(reason ?? '', expected);
  });
