/** How the reporter of `clients/typescript` sends events, with a service that is made of a function. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as takeTurn } from 'node:timers/promises';
import type { Event } from '../../clients/typescript/messages.ts';
import { createReporter } from '../../clients/typescript/reporter.ts';
import { waitUntil } from '../support/basics/wait-until.ts';

const EVENT: Event = { firstToken: { requestId: 'r', ttftMillis: 1, at: '2026-01-01T00:00:00.000Z' } };

function openReporter() {
  const batches: number[] = [];
  const transport = {
    encode: (event: Event) => event,
    async sendBatch(events: readonly Event[]) {
      batches.push(events.length);
      return { accepted: events.length, refused: 0 };
    },
    describeFailure: () => ({ isFinal: false, retryAfterMs: 0 }),
  };
  const reporter = createReporter(transport, {});
  return { batches, reporter };
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
