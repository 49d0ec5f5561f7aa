import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HISTORY_COLUMNS } from '../schema/columns.ts';
import { createServerHistory, HISTORY_SIZE, type ServerHistory } from './server-history.ts';

function read(history: ServerHistory, nowMs: number): Record<string, number> {
  const known = new Float64Array(HISTORY_SIZE);
  history.read(nowMs, known);
  return Object.fromEntries(HISTORY_COLUMNS.map((name, h) => [name, known[h]!]));
}

test('an unreported server has no history', () => {
  assert.ok(Object.values(read(createServerHistory(), 1000)).every(Number.isNaN));
});

test('dispatches and first tokens show what waits, since when, and how fast first tokens come', () => {
  const history = createServerHistory();
  for (const [i, atMs] of [0, 100, 200, 300].entries()) history.dispatch(`r${i}`, { atMs, tokens: 1000 + i });
  history.firstToken('r0', 400);
  history.firstToken('r1', 450);
  assert.deepEqual(read(history, 500), {
    sinceFirstTokenMs: 50,
    firstTokenGapMs: 50,
    waitingTokens: 2005,
    oldestWaitingMs: 300,
    expectedWaitMs: 100,
    sinceDispatchMs: 200,
    sinceEarlierDispatchMs: 300,
  });
});

test('first tokens of one step count as no gap', () => {
  const history = createServerHistory();
  for (const request of ['a', 'b', 'c']) history.dispatch(request, { atMs: 0, tokens: 1 });
  history.firstToken('a', 100);
  history.firstToken('b', 101);
  assert.ok(Number.isNaN(read(history, 102).firstTokenGapMs!));
  history.firstToken('c', 131);
  assert.equal(read(history, 140).firstTokenGapMs, 30);
});

test('values older than a minute are missing', () => {
  const history = createServerHistory();
  history.dispatch('a', { atMs: 0, tokens: 1 });
  history.firstToken('a', 50);
  assert.equal(read(history, 60_000).sinceFirstTokenMs, 59_950);
  assert.ok(Object.values(read(history, 60_051)).every(Number.isNaN));
});

test('a request whose first token was never reported does not wait for ever', () => {
  const history = createServerHistory();
  history.dispatch('lost', { atMs: 0, tokens: 500 });
  for (let i = 1; i <= 16; i++) {
    history.dispatch(`r${i}`, { atMs: 10 * i, tokens: 1 });
    assert.equal(read(history, 10 * i).waitingTokens, 501);
    history.firstToken(`r${i}`, 10 * i + 5);
  }
  assert.equal(read(history, 200).waitingTokens, 0);
  history.dispatch('last', { atMs: 300, tokens: 7 });
  assert.equal(read(history, 120_300).waitingTokens, 7);
  assert.ok(Number.isNaN(read(history, 120_301).waitingTokens!));
});

test('a request that ends without a first token does not wait any more', () => {
  const history = createServerHistory();
  history.dispatch('a', { atMs: 0, tokens: 9 });
  history.end('a');
  assert.equal(read(history, 10).waitingTokens, 0);
});

test('readAsOf() reads what was known at an earlier moment, and nothing once that is forgotten', () => {
  const history = createServerHistory();
  for (let i = 0; i < 30; i++) {
    history.begin(1000 * (i + 1));
    history.dispatch(`r${i}`, { atMs: 1000 * i, tokens: 1 });
  }
  const read = (thenMs: number) => {
    const known = new Float64Array(HISTORY_SIZE);
    history.readAsOf(thenMs, known);
    return known[HISTORY_COLUMNS.indexOf('sinceDispatchMs')];
  };
  assert.equal(read(30_500), 1500);
  assert.equal(read(29_999), 1999, 'the last dispatch was not known then');
  assert.equal(read(20_500), 1500);
  assert.ok(Number.isNaN(read(5000)!));
});

test('readAsOf() never knows more than was known, and at most ten milliseconds less, while events come fast', () => {
  const history = createServerHistory();
  for (let ms = 1; ms <= 100; ms++) {
    history.begin(ms);
    history.dispatch(`r${ms}`, { atMs: ms, tokens: 1 });
  }
  const known = new Float64Array(HISTORY_SIZE);
  for (let thenMs = 20; thenMs <= 100; thenMs++) {
    history.readAsOf(thenMs, known);
    const age = known[HISTORY_COLUMNS.indexOf('sinceDispatchMs')]!;
    assert.ok(age >= 0 && age <= 11, `${thenMs}: ${age}`);
  }
});

test('a clock that is set back by an hour clears the history', () => {
  const history = createServerHistory();
  const HOUR_MS = 3_600_000;
  history.begin(HOUR_MS);
  history.dispatch('lost', { atMs: HOUR_MS, tokens: 9 });
  history.dispatch('a', { atMs: HOUR_MS, tokens: 9 });
  history.firstToken('a', HOUR_MS);
  for (const backMs of [900, 2500])
    assert.equal(read(history, HOUR_MS - backMs).sinceFirstTokenMs, 0, 'clocks are corrected a little all the time');
  assert.ok(Object.values(read(history, 5000)).every(Number.isNaN), 'as a prediction asks');
  history.begin(6000);
  history.dispatch('b', { atMs: 6000, tokens: 4 });
  assert.equal(read(history, 6500).waitingTokens, 4);
  history.begin(7000);
  history.firstToken('b', 7000);
  assert.equal(read(history, 7250).sinceFirstTokenMs, 250);
});

test('a report after a clock was set back clears the history, and earlier events are unknown as of then', () => {
  const history = createServerHistory();
  for (const ms of [100_000, 100_100, 100_200]) {
    history.begin(ms);
    history.dispatch(`r${ms}`, { atMs: ms, tokens: 1 });
  }
  for (const ms of [5000, 5100]) {
    history.begin(ms);
    history.dispatch(`r${ms}`, { atMs: ms, tokens: 1 });
  }
  const known = new Float64Array(HISTORY_SIZE);
  history.readAsOf(5050, known);
  assert.deepEqual(
    [known[HISTORY_COLUMNS.indexOf('sinceDispatchMs')], known[HISTORY_COLUMNS.indexOf('waitingTokens')]],
    [50, 1],
  );
  history.readAsOf(100_150, known);
  assert.equal(known[HISTORY_COLUMNS.indexOf('waitingTokens')], 2);
});
