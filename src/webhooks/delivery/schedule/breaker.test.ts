import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  advanceBreaker,
  allowedAttempts,
  type Breaker,
  type BreakerEvent,
  type BreakerState,
  CLOSED_BREAKER,
  HOOK_RULES,
  MAX_PAUSE_MS,
  ORIGIN_RULES,
  pauseMs,
  restoreBreaker,
  TRANSITIONS,
} from './breaker.ts';

const NOW = 100_000;
const begin: BreakerEvent = { kind: 'begin' };
const endPause: BreakerEvent = { kind: 'end_pause' };
const success: BreakerEvent = { kind: 'success' };
const failure: BreakerEvent = { kind: 'failure' };
const rateLimited: BreakerEvent = { kind: 'rate_limited', retryAfterMs: 30_000 };

function advance(breaker: Breaker, events: readonly BreakerEvent[], nowMs = NOW, rules = ORIGIN_RULES): Breaker {
  return events.reduce((before, event) => advanceBreaker(before, event, { nowMs, random: 0.5, rules }), breaker);
}

const times = (count: number, event: BreakerEvent): BreakerEvent[] => Array.from({ length: count }, () => event);

const nearlyOpen = advance(CLOSED_BREAKER, times(4, failure));
const open = advance(CLOSED_BREAKER, times(5, failure));
const probing = advance(open, [begin], NOW + 5000);
const ramping = advance(probing, [success]);
const nearlyUp = advance(ramping, times(14, success));

/** All transitions: `docs/how-it-works/delivery.md` has the same table with reasons. The pause begins at `NOW`. */
const table: [from: string, before: Breaker, event: BreakerEvent, state: BreakerState, pauseMs?: number][] = [
  ['closed', CLOSED_BREAKER, begin, 'closed'],
  ['closed', CLOSED_BREAKER, endPause, 'closed'],
  ['closed', CLOSED_BREAKER, success, 'closed'],
  ['closed', CLOSED_BREAKER, failure, 'closed'],
  ['closed, four failures', nearlyOpen, success, 'closed'],
  ['closed, four failures', nearlyOpen, failure, 'open', 5000],
  ['closed, four failures', nearlyOpen, { kind: 'failure', retryAfterMs: 60_000 }, 'open', 66_000],
  ['closed, four failures', nearlyOpen, { kind: 'failure', retryAfterMs: 1000 }, 'open', 5000],
  ['closed', CLOSED_BREAKER, rateLimited, 'open', 33_000],
  ['closed', CLOSED_BREAKER, { kind: 'rate_limited', retryAfterMs: 86_400_000 }, 'open', 330_000],
  ['open', open, begin, 'open', 5000],
  ['open', open, endPause, 'open', 0],
  ['open, pause over', { ...open, untilMs: NOW - 1 }, endPause, 'open', -1],
  ['open', open, success, 'open', 5000],
  ['open', open, failure, 'open', 5000],
  ['open', open, rateLimited, 'open', 33_000],
  ['open', open, { kind: 'rate_limited', retryAfterMs: 1000 }, 'open', 5000],
  ['open, pause over', { ...open, untilMs: NOW }, begin, 'probing'],
  ['probing', probing, begin, 'probing'],
  ['probing', probing, endPause, 'probing'],
  ['probing', probing, success, 'ramping'],
  ['probing', probing, failure, 'open', 10_000],
  ['probing', probing, rateLimited, 'open', 33_000],
  ['ramping', ramping, begin, 'ramping'],
  ['ramping', ramping, endPause, 'ramping'],
  ['ramping', ramping, success, 'ramping'],
  ['ramping', nearlyUp, success, 'closed'],
  ['ramping', ramping, failure, 'ramping'],
  ['ramping, four failures', advance(ramping, times(4, failure)), failure, 'open', 10_000],
  ['ramping', ramping, rateLimited, 'open', 33_000],
];
for (const [from, before, event, state, forMs] of table) {
  const wait = 'retryAfterMs' in event && event.retryAfterMs ? `, Retry-After ${event.retryAfterMs} ms` : '';
  test(`${from} + ${event.kind}${wait} = ${state}${forMs === undefined ? '' : ` for ${forMs} ms`}`, () => {
    const after = advance(before, [event]);
    assert.equal(after.state, state);
    if (forMs !== undefined) assert.equal(after.untilMs - NOW, forMs);
  });
}

test('the table above has every transition', () => {
  const tested = new Set(table.map(([, before, event]) => `${before.state} ${event.kind}`));
  for (const [state, events] of Object.entries(TRANSITIONS))
    for (const kind of Object.keys(events)) assert.ok(tested.has(`${state} ${kind}`), `${state} ${kind}`);
});

test('an open breaker allows no attempt, a probing one allows one, a closed one allows all', () => {
  assert.equal(allowedAttempts(open, NOW + 4999), 0);
  assert.equal(allowedAttempts(open, NOW + 5000), 1);
  assert.equal(allowedAttempts(probing, NOW), 1);
  assert.equal(allowedAttempts(nearlyOpen, NOW), Number.POSITIVE_INFINITY);
});

for (const [name, rules, steps] of [
  ['an origin', ORIGIN_RULES, [1, 2, 4, 8]],
  ['a hook', HOOK_RULES, [1, 2, 4]],
] as const)
  test(`after a good probe ${name} gets ${steps.join(', ')} at once, then all, whatever single failures come between`, () => {
    let breaker = ramping;
    const seen = new Set<number>();
    for (let count = 0; breaker.state === 'ramping'; count += 1) {
      seen.add(allowedAttempts(breaker, NOW));
      breaker = advance(breaker, [count % 4 === 3 ? failure : success], NOW, rules);
    }
    assert.deepEqual([...seen], steps);
    assert.equal(breaker.state, 'closed');
  });

test('a failed probe doubles the pause, up to five minutes', () => {
  let breaker = open;
  const pauses: number[] = [];
  for (let count = 0; count < 9; count += 1) {
    pauses.push(breaker.untilMs - NOW);
    breaker = advance({ ...breaker, untilMs: NOW }, [begin, failure]);
  }
  assert.deepEqual(pauses, [5000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]);
});

test('a pause that a person ends again and again does not grow', () => {
  let breaker = advance({ ...open, untilMs: NOW }, [begin, failure]);
  for (let count = 0; count < 9; count += 1) {
    breaker = advance(breaker, [endPause, begin, failure]);
    assert.equal(breaker.untilMs - NOW, 10_000);
  }
});

test('a receiver that limits rates is never paused for longer than its Retry-After', () => {
  let breaker = CLOSED_BREAKER;
  for (let count = 0; count < 20; count += 1) {
    breaker = advance(breaker, [{ kind: 'rate_limited', retryAfterMs: 1000 }]);
    assert.equal(breaker.untilMs - NOW, 1100);
    breaker = advance({ ...breaker, untilMs: NOW }, [begin, success, success]);
  }
});

test('a pause remembers since when, over failed probes and the ramp, until it is closed', () => {
  const again = advance(open, [begin, failure], NOW + 5000);
  assert.equal(again.sinceMs, NOW);
  const relapsed = advance({ ...again, untilMs: 0 }, [begin, success, ...times(5, failure)], NOW + 60_000);
  assert.deepEqual([relapsed.state, relapsed.sinceMs], ['open', NOW]);
  assert.equal(advance(CLOSED_BREAKER, times(5, failure), NOW + 90_000).sinceMs, NOW + 90_000);
});

test('successes without a failure leave no trace', () => {
  assert.equal(advance(nearlyOpen, times(20, success)), CLOSED_BREAKER);
});

test('a breaker opens when five of the last twenty failed and these are nine tenths of them, and not before', () => {
  const bits = fc.array(fc.boolean(), { maxLength: 60 });
  fc.assert(
    fc.property(bits, (outcomes) => {
      let breaker = CLOSED_BREAKER;
      let window: boolean[] = [];
      for (const isFailure of outcomes) {
        window = [...window, isFailure].slice(-20);
        if (!window.includes(true)) window = [];
        breaker = advance(breaker, [isFailure ? failure : success]);
        const failures = window.filter(Boolean).length;
        const mustOpen = isFailure && failures >= 5 && failures >= 0.9 * window.length;
        assert.equal(breaker.state, mustOpen ? 'open' : 'closed');
        if (mustOpen) return;
      }
    }),
  );
});

test('a breaker is restored from its row', () => {
  const row = { isPaused: false, fails: 0, openings: 0, sinceMs: 7000, untilMs: 9000 };
  assert.equal(restoreBreaker(row), CLOSED_BREAKER);
  assert.equal(advance(restoreBreaker({ ...row, fails: 4 }), [failure]).state, 'open');
  for (const paused of [restoreBreaker({ ...row, fails: 5 }), restoreBreaker({ ...row, isPaused: true })]) {
    assert.equal(allowedAttempts(paused, 8999), 0);
    assert.equal(allowedAttempts(paused, 9000), 1);
    assert.equal(paused.sinceMs, 7000);
  }
  const third = restoreBreaker({ ...row, isPaused: true, openings: 3 });
  assert.equal(advance(third, [begin, failure], NOW).untilMs - NOW, 40_000);
});

test('a pause that is longer than any can be is over: the clock was ahead when it began', () => {
  const DAY_MS = 86_400_000;
  const ahead = advance(nearlyOpen, [failure], NOW + DAY_MS);
  assert.equal(allowedAttempts(ahead, NOW + DAY_MS), 0);
  assert.equal(allowedAttempts(ahead, NOW), 1);
  assert.equal(advance(ahead, [begin], NOW).state, 'probing');
});

test('a pause is always within a fifth of the plan', () => {
  fc.assert(
    fc.property(fc.nat({ max: 1000 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (openings, random) => {
      const pause = pauseMs(openings, random);
      assert.ok(pause >= 4000 && pause <= 1.2 * MAX_PAUSE_MS);
    }),
  );
});
