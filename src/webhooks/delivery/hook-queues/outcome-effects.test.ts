import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  readDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { startTestWorker, waitForHookQueue } from '../../../../test/support/webhooks/delivery-worker.ts';
import { statement } from '../../../database/store.ts';
import { realWorld } from '../../../world.ts';

const healthSql = statement<{ fails: number; failing_since_ms: number | null; parked: number; pause_reason: string }>(
  'test-health',
  'SELECT fails, failing_since_ms, parked, pause_reason FROM endpoint_queue WHERE hook_id = 1',
);

forEachEngine('outcomes that come after a pause began count and may lengthen it, and do not end it', async (store) => {
  const responses: ServerResponse[] = [];
  await using receiver = await startReceiver((_, response) => void responses.push(response));
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  const ids: number[] = [];
  for (let count = 0; count < 4; count += 1) ids.push(await enqueueTestDelivery(store, { hookId: 1, url }));
  await using worker = startTestWorker(store);
  worker.wake();
  await receiver.waitFor(4);
  const limitFor = (seconds: string) => responses.shift()!.writeHead(429, { 'retry-after': seconds }).end();
  const readHealth = async () => (await store.read(healthSql))[0]!;
  const waitUntilAttempted = (count: number) =>
    waitUntil(async () => {
      const rows = await Promise.all(ids.map((id) => readDelivery(store, id)));
      return rows.filter(({ attempts }) => attempts > 0).length === count;
    });

  limitFor('20');
  const first = await waitForHookQueue(store, 1, ({ parked }) => parked === 1);
  limitFor('200');
  const second = await waitForHookQueue(store, 1, ({ next_at_ms }) => next_at_ms > first.next_at_ms);
  assert.ok(second.next_at_ms > realWorld.nowMs() + 150_000, 'the later and longer Retry-After counts');
  responses.shift()!.writeHead(503).end();
  await waitUntilAttempted(3);
  const { fails, parked } = await readHealth();
  assert.deepEqual({ fails, parked }, { fails: 3, parked: 1 });
  responses.shift()!.end('ok');
  await waitUntilAttempted(4);
  assert.deepEqual(await readHealth(), { fails: 0, failing_since_ms: null, parked: 1, pause_reason: 'retry_after' });
  assert.equal((await waitForHookQueue(store, 1)).next_at_ms, second.next_at_ms);
});
