import assert from 'node:assert/strict';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { enqueueTestDelivery, readDelivery } from '../../../../test/support/webhooks/deliveries-store.ts';
import { type Store, statement } from '../../../database/store.ts';
import { createLog } from '../../../telemetry/log.ts';
import { createMetrics } from '../../../telemetry/metrics.ts';
import { realWorld } from '../../../world.ts';
import { addDeliveryMinutes, listDeliveryMinutes, minuteOf } from '../statistics/delivery-minute-store.ts';
import { createDeliverySweeper } from './delivery-sweeper.ts';

const DAY_MS = 86_400_000;
const hideContentsSql = statement('test-hide-contents', 'ALTER TABLE delivery_contents RENAME TO hidden_contents');

forEachEngine('a kind that cannot be swept is counted, and the kinds after it are swept', async (store) => {
  const metrics = createMetrics();
  const world = { ...realWorld, isClockTrusted: () => true };
  await enqueueTestDelivery(store, { hookId: 1, url: 'http://127.0.0.1:9/' });
  const minute = minuteOf(world.nowMs() - 2 * DAY_MS);
  await addDeliveryMinutes(store, [{ hookId: 1, minute, accepted: 1, failed: 0, durations: [] }]);
  assert.equal((await listDeliveryMinutes(store, 'all', 0)).length, 1);
  await store.write(hideContentsSql);
  const sweeper = createDeliverySweeper({ store, world, log: createLog('silent'), metrics });
  sweeper.start();
  await waitUntil(async () => (await listDeliveryMinutes(store, 'all', 0)).length === 0);
  await sweeper.stop();
  const text = await metrics.getSingleMetricAsString('trivet_sweep_failures_total');
  const counts = [...text.matchAll(/kind="(\w+)"\} (\d+)/g)].map(([, kind, count]) => [kind, Number(count)]);
  assert.deepEqual(Object.fromEntries(counts), {
    expired: 0,
    canceled: 0,
    deleted: 0,
    unusedContents: 1,
    hookQueues: 0,
    minutes: 0,
  });
});

const HOUR_MS = 3_600_000;
const url = 'http://127.0.0.1:9/';
const planRetrySql = statement(
  'test-plan-retry',
  'UPDATE deliveries SET lane = 1, attempts = $2, due_at_ms = $3 WHERE id = $1',
);

/** The due time of a retry after the first round of a process whose clock differs by this much from the one that wrote it. */
async function sweepWithClock(
  store: Store,
  aheadMs: number,
  { attempts, dueAtMs }: { attempts: number; dueAtMs: number },
) {
  const world = { ...realWorld, nowMs: () => realWorld.nowMs() + aheadMs, isClockTrusted: () => false };
  const retry = await enqueueTestDelivery(store, { hookId: 1, url });
  await store.write(planRetrySql, [retry, attempts, dueAtMs]);
  // In every round this delivery is due first.
  const first = await enqueueTestDelivery(store, { hookId: 2, url, nowMs: realWorld.nowMs() + 2 * DAY_MS });
  const { due_at_ms: before } = await readDelivery(store, first);
  const sweeper = createDeliverySweeper({ store, world, log: createLog('silent'), metrics: createMetrics() });
  sweeper.start();
  await waitUntil(async () => (await readDelivery(store, first)).due_at_ms < before);
  await sweeper.stop();
  return (await readDelivery(store, retry)).due_at_ms;
}

forEachEngine('a start with a clock that is behind makes no retry earlier', async (store) => {
  const dueAtMs = realWorld.nowMs() + 20 * HOUR_MS;
  assert.equal(await sweepWithClock(store, -40 * DAY_MS, { attempts: 9, dueAtMs }), dueAtMs);
});

forEachEngine('a start corrects retries that were written by a clock that was ahead', async (store) => {
  const dueAtMs = realWorld.nowMs() + 20 * HOUR_MS;
  assert.ok((await sweepWithClock(store, 0, { attempts: 1, dueAtMs })) < realWorld.nowMs() + HOUR_MS);
});

forEachEngine('a start corrects the short wait of a first retry, though the clock may be behind', async (store) => {
  const dueAtMs = realWorld.nowMs() + 20 * HOUR_MS;
  const nowMs = realWorld.nowMs() - 40 * DAY_MS;
  assert.ok((await sweepWithClock(store, -40 * DAY_MS, { attempts: 1, dueAtMs })) < nowMs + HOUR_MS);
});
