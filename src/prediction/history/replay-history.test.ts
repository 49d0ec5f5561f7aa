import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ReplayedRequest, replayHistory } from './replay-history.ts';

const drawn = fc.array(fc.tuple(fc.nat(4000), fc.nat(3000), fc.nat(2000)), { minLength: 2, maxLength: 25 });

function toRequests(rows: readonly (readonly [number, number, number])[]): ReplayedRequest[] {
  return rows.map(([atMs, ttftMs, tokens]) => ({ server: 's', atMs, firstTokenMs: atMs + ttftMs + 1, tokens }));
}

test('what happens later, in whatever order, never changes what was known before', () => {
  fc.assert(
    fc.property(drawn, fc.nat(5000), fc.nat(3000), (rows, cutMs, shift) => {
      const requests = toRequests(rows);
      const shuffled = requests.map((request) => ({
        ...request,
        atMs: request.atMs > cutMs ? cutMs + 1 + ((request.atMs * 7919 + shift) % 5000) : request.atMs,
        firstTokenMs: request.firstTokenMs > cutMs ? cutMs + 1 + shift : request.firstTokenMs,
        tokens: request.atMs > cutMs ? shift : request.tokens,
      }));
      const [before, after] = [replayHistory(requests), replayHistory(shuffled)];
      for (const [i, request] of requests.entries()) if (request.atMs <= cutMs) assert.deepEqual(after[i], before[i]);
    }),
  );
});

test('a report that comes late, or never, is not known before', () => {
  const requests = toRequests([
    [0, 99, 10],
    [200, 99, 20],
    [1000, 99, 40],
  ]);
  const waitingTokens = (of: Float64Array[]) => of.map((known) => known[2]);
  assert.deepEqual(waitingTokens(replayHistory(requests)), [Number.NaN, 0, 0]);
  assert.deepEqual(waitingTokens(replayHistory(requests, (eventMs) => eventMs + 150)), [Number.NaN, 10, 0]);
  assert.deepEqual(waitingTokens(replayHistory(requests, () => Number.POSITIVE_INFINITY)), [
    Number.NaN,
    Number.NaN,
    Number.NaN,
  ]);
});

test('of a request whose dispatch and first token are reported together, nothing waits any more', () => {
  const requests = toRequests([
    [0, 99, 10],
    [200, 999, 20],
    [1500, 99, 40],
  ]);
  const known = replayHistory(requests, (eventMs) => Math.ceil(eventMs / 1000) * 1000)[2]!;
  const [sinceFirstTokenMs, , waitingTokens, oldestWaitingMs] = known;
  assert.deepEqual([sinceFirstTokenMs, waitingTokens, oldestWaitingMs], [1400, 20, 1300]);
});

test('servers do not know of each other', () => {
  const [one, other] = toRequests([
    [0, 500, 10],
    [100, 500, 20],
  ]);
  const [, known] = replayHistory([one!, { ...other!, server: 'other' }]);
  assert.ok(known!.every(Number.isNaN));
});
