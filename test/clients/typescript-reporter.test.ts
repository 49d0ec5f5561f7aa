/** How the reporter of `clients/typescript` sends events, with a service that is made of a function. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as takeTurn } from 'node:timers/promises';
import type { Event } from '../../clients/typescript/messages.ts';
import { createReporter, type Taken } from '../../clients/typescript/reporter.ts';
import { waitUntil } from '../support/basics/wait-until.ts';

const EVENT: Event = { firstToken: { requestId: 'r', ttftMillis: 1, at: '2026-01-01T00:00:00.000Z' } };

/** The service takes at most so many events at once, and never one that `isBad`. */
function openReporter({ most = 500, isBad = (_event: Event): boolean => false } = {}) {
  const batches: number[] = [];
  const errors: unknown[] = [];
  const transport = {
    encode: (event: Event) => event,
    async sendBatch(events: readonly Event[]) {
      batches.push(events.length);
      if (events.length > most || events.some(isBad)) throw new Error('refused for good');
      return { accepted: events.length, refused: 0 };
    },
    describeFailure: () => ({ isFinal: true, retryAfterMs: 0 }),
  };
  const reporter = createReporter(transport, { onError: (error) => void errors.push(error) });
  return { batches, errors, reporter };
}

test('the TypeScript reporter sends full batches without a pause between them', async () => {
  const { batches, reporter } = openReporter();
  for (let event = 0; event < 10_000; event++) reporter.send(EVENT);
  await waitUntil(() => batches.length > 0);
  assert.deepEqual(
    batches,
    Array.from({ length: 20 }, () => 500),
  );
  assert.equal((await reporter.close()).accepted, 10_000);
});

test('close() of the TypeScript reporter sends what waits at once', async () => {
  const { batches, reporter } = openReporter();
  for (let event = 0; event < 700; event++) reporter.send(EVENT);
  const reported = await Promise.race([reporter.close(), takeTurn()]);
  assert.deepEqual(batches, [500, 200]);
  assert.deepEqual(reported, { accepted: 700, refused: 0, dropped: 0 });
});

test('the TypeScript reporter halves a batch that is too large, and lets batches grow again', async () => {
  const { batches, errors, reporter } = openReporter({ most: 100 });
  for (let event = 0; event < 700; event++) reporter.send(EVENT);
  assert.deepEqual(await reporter.close(), { accepted: 700, refused: 0, dropped: 0 });
  assert.deepEqual(batches, [500, 250, 125, 62, 72, 82, 92, 102, 51, 61, 71, 81, 91, 37]);
  assert.deepEqual(errors, []);
});

test('the TypeScript reporter drops bad events without a pause between them while good ones are taken', async () => {
  const bad: Event = { ...EVENT };
  const { errors, reporter } = openReporter({ isBad: (event) => event === bad });
  const startMs = performance.now();
  for (let event = 0; event < 2000; event++) reporter.send(event % 100 === 50 ? bad : EVENT);
  await waitUntil(() => reporter.stats().waiting === 0);
  const tookMs = performance.now() - startMs;
  assert.ok(tookMs < 3000, `${tookMs} ms`);
  assert.ok(errors.length <= 1 + tookMs / 1000, `onError was called ${errors.length} times in ${tookMs} ms`);
  assert.deepEqual(await reporter.close(), { accepted: 1980, refused: 0, dropped: 20 });
});

test('the TypeScript reporter counts no event twice whose answer comes after close() gave up', async () => {
  const answered = Promise.withResolvers<Taken>();
  const describeFailure = () => ({ isFinal: false, retryAfterMs: 0 });
  const transport = { encode: (event: Event) => event, sendBatch: () => answered.promise, describeFailure };
  const reporter = createReporter(transport, {});
  reporter.send(EVENT);
  assert.deepEqual(await reporter.close(), { accepted: 0, refused: 0, dropped: 1 });
  answered.resolve({ accepted: 1, refused: 0 });
  await takeTurn();
  assert.deepEqual(reporter.stats(), { accepted: 0, refused: 0, dropped: 1, waiting: 0, error: undefined });
});

test('the TypeScript reporter pauses after a drop when nothing is taken', async () => {
  const { batches, reporter } = openReporter({ most: 0 });
  for (let event = 0; event < 4; event++) reporter.send(EVENT);
  await waitUntil(() => reporter.stats().dropped === 2);
  assert.deepEqual(batches, [4, 2, 1, 1]);
  assert.equal((await reporter.close()).dropped, 4);
});

test('the TypeScript reporter drops the one event of a batch that is refused for good, with its reason', async () => {
  const bad: Event = { ...EVENT };
  const { batches, errors, reporter } = openReporter({ isBad: (event) => event === bad });
  for (let event = 0; event < 20; event++) reporter.send(event === 3 ? bad : EVENT);
  assert.deepEqual(await reporter.close(), { accepted: 19, refused: 0, dropped: 1 });
  assert.deepEqual(batches, [20, 10, 5, 2, 12, 6, 3, 1, 11, 5, 2, 1, 1, 11, 4]);
  assert.deepEqual(errors.map(String), ['Error: refused for good']);
});
