import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { testCipher } from '../../../../test/support/webhooks/delivery-worker.ts';
import { statement } from '../../../database/store.ts';
import { createLog } from '../../../telemetry/log.ts';
import { createMetrics } from '../../../telemetry/metrics.ts';
import { realWorld } from '../../../world.ts';
import { createAddressGuard } from '../../addresses/address-guard.ts';
import { replay } from '../queue/delivery-restart-store.ts';
import { MIN_FAILURES } from '../schedule/breaker.ts';
import { createOriginBreakers } from '../schedule/origin-breakers.ts';
import { createDeliveryMetrics } from './delivery-metrics.ts';
import { createDeliveryWorker } from './delivery-worker.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const endSql = statement('test-end-delivery', 'UPDATE deliveries SET state = $2 WHERE id = $1');

test('an origin to which nothing is sent any more does not count as open for ever', async () => {
  const metrics = createMetrics();
  const origins = createOriginBreakers();
  let nowMs = 1_000_000;
  createDeliveryMetrics(metrics, {
    countPending: async () => 0,
    countUnderWay: () => 0,
    listOriginBreakers: () => origins.list(nowMs),
    countPaused: async () => new Map(),
  });
  const countOpen = async () => {
    const text = await metrics.getSingleMetricAsString('trivet_delivery_breakers');
    return Number(/state="open"\} (\d+)/.exec(text)?.[1]);
  };
  const fail = () => origins.record('https://down.example', { kind: 'failure' }, { nowMs, random: 0.5 });
  for (let count = 0; count < MIN_FAILURES; count += 1) fail();
  assert.equal(await countOpen(), 1);
  nowMs += HOUR_MS;
  assert.equal(await countOpen(), 1);
  nowMs += HOUR_MS;
  assert.equal(await countOpen(), 0);
  origins.record('https://down.example', { kind: 'begin' }, { nowMs, random: 0.5 });
  fail();
  assert.equal(await countOpen(), 1, 'a probe that fails begins another pause');
});

forEachEngine('the delay until the first attempt counts neither redeliveries nor replays', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  const metrics = createMetrics();
  const worker = createDeliveryWorker({
    store,
    world: realWorld,
    log: createLog('warn'),
    metrics,
    cipher: testCipher,
    guard: createAddressGuard({ allowCidrs: ['127.0.0.0/8'] }),
  });
  await using _stop = { [Symbol.asyncDispose]: () => worker.stop() };
  const countDelays = async () => {
    const text = await metrics.getSingleMetricAsString('trivet_delivery_send_delay_seconds');
    return Number(/_count (\d+)/.exec(text)?.[1]);
  };
  const dayAgoMs = realWorld.nowMs() - DAY_MS;
  const sent = await enqueueTestDelivery(store, { hookId: 1, url, nowMs: dayAgoMs });
  const expired = await enqueueTestDelivery(store, { hookId: 1, url, nowMs: dayAgoMs });
  await store.write(endSql, [expired, 'expired']);
  worker.start();
  await waitForDelivery(store, sent);
  assert.equal(await countDelays(), 1);

  const redelivery = await worker.manual.redeliver(1, sent);
  assert.equal((await redelivery?.attempt)?.status, 200);
  await store.write(endSql, [sent, 'dead']);
  assert.equal(await replay(store, 1, 0, realWorld.nowMs()), 2);
  worker.wake();
  for (const id of [sent, expired]) await waitForDelivery(store, id);
  assert.equal(receiver.received.length, 4);
  assert.equal(await countDelays(), 1);
});
