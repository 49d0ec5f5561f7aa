import assert from 'node:assert/strict';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { startTestWorker } from '../../../../test/support/webhooks/delivery-worker.ts';
import type { Store } from '../../../database/store.ts';
import { Failure } from '../../../errors.ts';
import { createLog } from '../../../telemetry/log.ts';

forEachEngine('the log says once that deliveries cannot be dispatched, and once that they are again', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  let [isAway, failed] = [false, 0];
  const read: Store['read'] = async (...given) => {
    if (!isAway) return await store.read(...given);
    failed += 1;
    throw new Failure('unavailable', 'The database is away');
  };
  const lines: string[] = [];
  const log = createLog('warn', { write: (line) => void lines.push(JSON.parse(line).msg) });
  await using worker = startTestWorker({ ...store, read }, undefined, undefined, log);
  const deliver = async () => {
    const id = await enqueueTestDelivery(store, { hookId: 1, url });
    worker.wake();
    assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
  };
  await deliver();
  isAway = true;
  await waitUntil(() => failed > 5);
  isAway = false;
  await deliver();
  await worker.stop();
  assert.deepEqual(
    lines.filter((line) => !line.includes('leases')),
    ['Cannot dispatch deliveries; trying again', 'Deliveries are dispatched again'],
  );
});
