import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { insertTestHook } from '../../../test/support/webhooks/deliveries-store.ts';
import { startManagement } from '../../../test/support/webhooks/webhook-management.ts';
import { statement } from '../../database/store.ts';
import { SWEEP_BATCH, SWEEP_WITHOUT_PAUSES } from '../../database/sweep.ts';
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
    await sweepEvents(store, nowMs);
    const [row] = await store.read(leftoversSql);
    return [row?.events, row?.keys, row?.tests];
  };
  assert.deepEqual(await sweepAt(START_MS + 1), [2, 1, 1]);
  assert.deepEqual(await sweepAt(START_MS + 3_600_000), [2, 1, 0]);
  assert.deepEqual(await sweepAt(START_MS + DAY_MS), [2, 0, 0]);
  assert.deepEqual(await sweepAt(START_MS + 30 * DAY_MS - 1), [2, 0, 0]);
  assert.deepEqual(await sweepAt(START_MS + 30 * DAY_MS), [0, 0, 0]);
});

const hideKeysSql = statement('test-hide-event-keys', 'ALTER TABLE event_keys RENAME TO hidden_event_keys');
const insertEventSql = statement(
  'test-insert-old-event',
  `INSERT INTO events (id, repository_id, kind, source, content, created_at_ms) VALUES ($1, $2, 'push', 'api', '{}', $3)`,
);
const countEventsSql = statement<{ count: number }>('test-count-events', 'SELECT COUNT(*) AS count FROM events');

forEachEngine('old events are deleted in batches with pauses, also when keys cannot be', async (store) => {
  await insertTestHook(store, { id: 1, url: 'http://127.0.0.1:9/' });
  const times = Array.from({ length: SWEEP_BATCH }, (_, index) => (index < 480 ? START_MS : START_MS + 1));
  await store.writeAll(times.map((at, id) => ({ statement: insertEventSql, parameters: [id + 1, 1, at] })));
  await store.write(hideKeysSql);
  const left: (number | undefined)[] = [];
  const failed: string[] = [];
  const { events } = await sweepEvents(store, START_MS + 30 * DAY_MS, {
    ...SWEEP_WITHOUT_PAUSES,
    pause: async () => void left.push((await store.read(countEventsSql))[0]?.count),
    onFailure: (kind) => void failed.push(kind),
  });
  assert.equal(events, 480);
  assert.deepEqual(left, [468, 404, 276, 20]);
  assert.deepEqual(failed, ['keys']);
});
