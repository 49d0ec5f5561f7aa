import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/engines.ts';
import { startManagement } from '../../../test/support/webhook-management.ts';
import { statement } from '../../database/store.ts';
import { realWorld } from '../../world.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { sweepEvents } from './event-sweeper-worker.ts';

const leftoversSql = statement<{ events: number; keys: number; tests: number }>(
  'test-sweep-leftovers',
  `SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM event_keys) AS keys,
     (SELECT count(*) FROM hook_tests) AS tests`,
);
const DAY_MS = 24 * 3_600_000;
const START_MS = Date.UTC(2026, 0, 1, 12);
const event = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', START_MS);

forEachEngine('keys go after a day, tests after their hour, events after 30 days', async (store) => {
  let nowMs = START_MS;
  const world = { ...realWorld, nowMs: () => nowMs };
  await using server = await startManagement(store, world);
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  const { body: hook } = await server.call('POST', '/repos/grace/doors/hooks', {
    json: { url: 'http://127.0.0.1:9001/', push_events: false },
  });
  await server.call('POST', '/repos/grace/doors/events', { json: event, headers: { 'idempotency-key': 'k' } });
  await server.call('POST', `/repos/grace/doors/hooks/${hook.id}/tests`);
  const sweepAt = async (timeMs: number) => {
    nowMs = timeMs;
    await sweepEvents({ store, world });
    const [row] = await store.read(leftoversSql);
    return [row?.events, row?.keys, row?.tests];
  };
  assert.deepEqual(await sweepAt(START_MS + 1), [2, 1, 1]);
  assert.deepEqual(await sweepAt(START_MS + 3_600_000), [2, 1, 0]);
  assert.deepEqual(await sweepAt(START_MS + DAY_MS), [2, 0, 0]);
  assert.deepEqual(await sweepAt(START_MS + 30 * DAY_MS - 1), [2, 0, 0]);
  assert.deepEqual(await sweepAt(START_MS + 30 * DAY_MS), [0, 0, 0]);
});
