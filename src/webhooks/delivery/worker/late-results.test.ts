/** Results that come after another worker has taken over the delivery are logged, and change nothing else. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type Receiver, startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  readAttempts,
  readDelivery,
  takeAllShards,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { createTestWorker, startTestWorker } from '../../../../test/support/webhooks/delivery-worker.ts';
import { type Store, statement } from '../../../database/store.ts';
import { createLog } from '../../../telemetry/log.ts';
import { realWorld } from '../../../world.ts';
import { restartWaiting } from '../queue/delivery-restart-store.ts';

const MINUTE_MS = 60_000;

const failSql = statement('test-fail-twice', 'UPDATE endpoint_queue SET fails = 2, failing_since_ms = 1');
const pauseSql = statement(
  'test-pause-by-another',
  `UPDATE endpoint_queue SET fails = 7, failing_since_ms = 1, openings = 1, parked = 1, paused_since_ms = 2,
     pause_reason = 'failures', next_at_ms = $1`,
);
const answerSql = statement('test-answer-of-another', `UPDATE hooks SET result = 'down', result_code = 503`);
const hookQueueSql = statement('test-whole-hook-queue', 'SELECT * FROM endpoint_queue');
const hookSql = statement('test-whole-hook', 'SELECT * FROM hooks');
const postponeSql = statement('test-postpone', 'UPDATE deliveries SET due_at_ms = due_at_ms + 1');

async function readHook(store: Store) {
  return { hook: await store.read(hookSql), hookQueue: await store.read(hookQueueSql) };
}

/** A receiver that answers when the test lets it. */
async function startWaitingReceiver(): Promise<{ receiver: Receiver; answer: (status: number) => void }> {
  const waiting: ServerResponse[] = [];
  const receiver = await startReceiver((_, response) => void waiting.push(response));
  const answer = (status: number): void => {
    for (const response of waiting.splice(0)) response.writeHead(status).end('late');
  };
  return { receiver, answer };
}

async function pauseByAnother(store: Store): Promise<void> {
  await store.write(pauseSql, [realWorld.nowMs() + MINUTE_MS]);
  await store.write(answerSql);
}

function collectLog() {
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => lines.push((JSON.parse(line) as { msg: string }).msg) });
  return { lines, log };
}

for (const status of [200, 410, 500])
  forEachEngine(`a late ${status} changes nothing of a hook that another worker has paused`, async (store) => {
    const { receiver, answer } = await startWaitingReceiver();
    await using _ = receiver;
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    const id = await enqueueTestDelivery(store, { hookId: 1, url });
    await store.write(failSql);
    const { lines, log } = collectLog();
    await using worker = createTestWorker(store, undefined, realWorld, log);
    worker.start();
    await receiver.waitFor(1);
    await takeAllShards(store, 'another', realWorld.nowMs() + MINUTE_MS);
    await pauseByAnother(store);
    const before = await readHook(store);
    answer(status);
    await worker.stop();
    assert.deepEqual(
      (await readAttempts(store, id)).map((attempt) => attempt.status),
      [status],
    );
    assert.deepEqual(await readHook(store), before);
    assert.equal((await readDelivery(store, id)).state, 'pending');
    assert.ok(!lines.includes('A webhook was disabled'));
  });

for (const status of [200, 410, 500])
  forEachEngine(`a ${status} that comes after the reservation of a manual attempt changes nothing`, async (store) => {
    const { receiver, answer } = await startWaitingReceiver();
    await using _ = receiver;
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    const id = await enqueueTestDelivery(store, { hookId: 1, url });
    const { lines, log } = collectLog();
    await using worker = createTestWorker(store, undefined, realWorld, log);
    const redelivery = await worker.manual.redeliver(1, id);
    await receiver.waitFor(1);
    // Another worker has found it due, and its attempt has failed.
    await store.write(postponeSql);
    await pauseByAnother(store);
    const before = await readHook(store);
    answer(status);
    assert.equal((await redelivery?.attempt)?.status, status);
    await worker.stop();
    assert.equal((await readAttempts(store, id)).length, 1);
    assert.deepEqual(await readHook(store), before);
    assert.ok(!lines.includes('A webhook was disabled'));
  });

const scheduleSql = statement<{ attempts: number; schedule_from: number; lane: number }>(
  'test-schedule-of-delivery',
  'SELECT attempts, schedule_from, lane FROM deliveries WHERE id = $1',
);

forEachEngine('a late result uses up no attempt of a redelivery, which stays reserved', async (store) => {
  const waiting: ServerResponse[] = [];
  await using receiver = await startReceiver((_, response) => void waiting.push(response));
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  const id = await enqueueTestDelivery(store, { hookId: 1, url });
  await using worker = startTestWorker(store);
  worker.wake();
  await receiver.waitFor(1);
  const redelivery = await worker.manual.redeliver(1, id);
  await receiver.waitFor(2);
  waiting.shift()!.writeHead(500).end();
  await waitForDelivery(store, id, (row) => row.attempts === 1);
  await restartWaiting(store, 1, realWorld.nowMs());
  assert.deepEqual(await store.read(scheduleSql, [id]), [{ attempts: 1, schedule_from: 1, lane: 1 }]);
  await assert.rejects(worker.manual.redeliver(1, id), { code: 'conflict' });
  waiting.shift()!.writeHead(500).end();
  await redelivery?.attempt;
  assert.deepEqual(await store.read(scheduleSql, [id]), [{ attempts: 2, schedule_from: 1, lane: 1 }]);
  assert.equal((await readDelivery(store, id)).state, 'pending');
});
