/**
 * `kill -9` while a large event is stored: its bodies are stored in parts, before the event. What was not accepted leaves
 * nothing that anybody sees, the same event under the same key is accepted once, and the lone bodies go with the log.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Store, statement } from '../../src/database/store.ts';
import { KEEP_LOG_MS } from '../../src/webhooks/delivery/schedule/delivery.ts';
import { sweepDeliveries } from '../../src/webhooks/delivery/worker/delivery-sweeper.ts';
import { realWorld } from '../../src/world.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { startReceiver } from '../support/network/receiver.ts';
import { startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, engines, findReasonToSkip, openTestStore } from '../support/store/engines.ts';
import { numberedPush, startPublishingService } from '../support/webhooks/publishing-service.ts';

const HOOKS = 40;
const DAY_MS = 86_400_000;
const commits = Array.from({ length: 4 }, (_, index) => ({
  id: index.toString(16).padStart(40, '0'),
  message: 'm'.repeat(220_000),
  timestamp: '2026-01-01T00:00:00Z',
  author: { name: 'Grace', email: 'grace@example.com' },
}));
const large = { ...numberedPush(1), commits };

const stored = statement<{ events: number; deliveries: number; contents: number }>(
  'test-large-event-stored',
  `SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM deliveries) AS deliveries,
     (SELECT count(*) FROM delivery_contents) AS contents`,
);

async function count(store: Store) {
  return (await store.read(stored))[0]!;
}

/** Waits until some bodies of the event are stored, but the event is not. */
async function waitForParts(store: Store, isAnswered: () => boolean): Promise<void> {
  await waitUntil(async () => {
    assert.ok(!isAnswered(), 'the event was answered before the kill');
    return (await count(store)).contents >= 3;
  }, 2);
}

async function send(url: string, token: string): Promise<{ status: number; id: unknown }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': 'once' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(large) });
  return { status: response.status, id: ((await response.json()) as { id: unknown }).id };
}

for (const engine of engines)
  test(`kill -9 in the middle of a large event loses nothing and leaves nothing half (${engine})`, {
    skip: findReasonToSkip(engine),
    timeout: 240_000,
  }, async () => {
    const place = await createStorePlace(engine);
    await using receiver = await startReceiver();
    const urls = Array.from({ length: HOOKS }, (_, index) => `${receiver.url}/${index}`);
    await using first = await startPublishingService({ place, processes: 1, urls });
    await using store = await openTestStore(place);
    let answer: object | undefined;
    const cut = assert.rejects(async () => {
      answer = await send(first.eventsUrl(0), first.token);
      assert.deepEqual(answer, undefined);
    });
    await waitForParts(store, () => answer !== undefined);
    await first.programs[0]!.kill();
    await cut;
    assert.equal(answer, undefined);
    const half = await count(store);
    assert.deepEqual([half.events, half.deliveries], [0, 0]);

    await using second = await startProgram(first.environment, first.environment.TRIVET_DATA_DIR);
    const eventsUrl = new URL(new URL(first.eventsUrl(0)).pathname, second.httpUrl).href;
    const answers = [await send(eventsUrl, first.token), await send(eventsUrl, first.token)];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [202, 202],
    );
    assert.equal(answers[0]?.id, answers[1]?.id);
    await receiver.waitFor(HOOKS);
    assert.equal(new Set(receiver.received.map(({ path }) => path)).size, HOOKS);
    const whole = await count(store);
    assert.deepEqual(whole, { events: 1, deliveries: HOOKS, contents: half.contents + HOOKS });

    await second.stop();
    assert.equal(receiver.received.length, HOOKS);
    await sweepDeliveries(store, realWorld.nowMs() + KEEP_LOG_MS + DAY_MS);
    assert.equal((await count(store)).contents, 0);
  });
