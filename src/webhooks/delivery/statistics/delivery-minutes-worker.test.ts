import assert from 'node:assert/strict';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { enqueue } from '../../../../test/support/webhooks/delivery-queue.ts';
import type { Store } from '../../../database/store.ts';
import { Failure } from '../../../errors.ts';
import { createLog } from '../../../telemetry/log.ts';
import { realWorld } from '../../../world.ts';
import { listDeliveryMinutes } from './delivery-minute-store.ts';
import { createDeliveryMinutes } from './delivery-minutes-worker.ts';

/** More than fit into one statement. */
const HOOKS = 70;

forEachEngine('counts of a write that failed are stored by the next one, and once', async (store) => {
  for (let hookId = 1; hookId <= HOOKS; hookId += 1) await enqueue(store, hookId);
  let writes = 0;
  // The second to fourth statements fail.
  const write: Store['write'] = async (asked, parameters) => {
    writes += 1;
    if (writes > 1 && writes < 5) throw new Failure('unavailable', 'The database is away');
    return await store.write(asked, parameters);
  };
  const world = { ...realWorld, sleep: () => new Promise<void>(setImmediate) };
  const minutes = createDeliveryMinutes({ store: { ...store, write }, world, log: createLog('silent') });
  const countAll = (kind: 'accepted' | 'blocked') => {
    for (let hookId = 1; hookId <= HOOKS; hookId += 1)
      minutes.count(hookId, { outcome: { kind } as never, timingsMs: { total: 5 } as never });
  };
  const readSums = async () => {
    const rows = await listDeliveryMinutes(store, 'all', 0);
    const sum = (read: (row: (typeof rows)[number]) => number) => rows.reduce((total, row) => total + read(row), 0);
    return [sum(({ accepted }) => accepted), sum(({ failed }) => failed), sum(({ durations }) => durations[0]!)];
  };
  countAll('accepted');
  minutes.start();
  await waitUntil(() => writes > 1);
  countAll('blocked');
  await waitUntil(async () => (await readSums())[2] === 2 * HOOKS);
  await minutes.stop();
  assert.deepEqual(await readSums(), [HOOKS, HOOKS, 2 * HOOKS]);
});
