import assert from 'node:assert/strict';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { enqueueTestDelivery } from '../../../../test/support/webhooks/deliveries-store.ts';
import { statement } from '../../../database/store.ts';
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
