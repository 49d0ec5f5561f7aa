import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { enqueueTestDelivery, insertTestHook } from '../../../test/support/webhooks/deliveries-store.ts';
import { statement } from '../../database/store.ts';
import { SWEEP_WITHOUT_PAUSES } from '../../database/sweep.ts';
import { cancelHookQueueStatement, holdHookQueueStatement } from '../delivery/queue/delivery-store.ts';
import {
  addDeliveryMinutes,
  forgetDeliveryMinutes,
  listDeliveryMinutes,
} from '../delivery/statistics/delivery-minute-store.ts';
import { countHooksByRepository } from './hook-status-store.ts';
import { countBacklog, countHooksInScope, findOldestWaiting, listTroubledHooks } from './overview-store.ts';
import { BY_OWNER } from './troubled-hooks-store.ts';

const URL = 'http://127.0.0.1:9/';

forEachEngine('countBacklog() and findOldestWaiting() see all owners, or those that are named', async (store) => {
  for (const [id, ownerId] of [
    [1, 'ada'],
    [2, 'grace'],
    [3, 'grace'],
  ] as const)
    await insertTestHook(store, { id, url: URL, ownerId });
  assert.equal(await findOldestWaiting(store, 'all'), undefined);
  for (const [hookId, ownerId, nowMs] of [
    [1, 'ada', 3000],
    [1, 'ada', 2000],
    [2, 'grace', 5000],
    [3, 'grace', 1000],
  ] as const)
    await enqueueTestDelivery(store, { hookId, ownerId, url: URL, nowMs });
  assert.deepEqual([await countBacklog(store, 'all'), await countBacklog(store, ['ada'])], [4, 2]);
  assert.deepEqual(await findOldestWaiting(store, ['ada']), {
    hookId: 1,
    repository: { ownerLogin: 'owner', path: 'repository-1' },
    createdAtMs: 2000,
  });
  assert.equal((await findOldestWaiting(store, 'all'))?.hookId, 3);
  await store.writeAll([holdHookQueueStatement(3, 6000)]);
  assert.equal((await findOldestWaiting(store, ['grace']))?.hookId, 2, 'held deliveries do not wait');
  assert.equal(await countBacklog(store, []), 0);
  await store.writeAll([cancelHookQueueStatement(1, 7000)]);
  assert.deepEqual([await countBacklog(store, 'all'), await countBacklog(store, ['ada'])], [2, 0]);
});

forEachEngine('countHooksInScope() and listTroubledHooks() leave out hooks that work', async (store) => {
  await insertTestHook(store, { id: 1, url: URL, ownerId: 'ada' });
  await insertTestHook(store, { id: 2, url: URL, ownerId: 'grace' });
  assert.deepEqual(await listTroubledHooks(store, 'all', 0), []);
  const none = { disabled: 0, switchedOff: 0, failing: 0, paused: 0 };
  assert.deepEqual(await countHooksInScope(store, 'all', 0), { repositories: 2, hooks: 2, ...none });
  assert.deepEqual(await countHooksInScope(store, ['ada'], 0), { repositories: 1, hooks: 1, ...none });
  assert.deepEqual(await countHooksInScope(store, [], 0), { repositories: 0, hooks: 0, ...none });
});

forEachEngine('a webhook that its owner switched off is counted apart and is not in trouble', async (store) => {
  for (const id of [1, 2]) await insertTestHook(store, { id, url: URL, ownerId: 'ada' });
  const disable = (id: number, reason: string) =>
    store.write(statement('test', 'UPDATE hooks SET disabled_at_ms = 1, disabled_reason = $2 WHERE id = $1'), [
      id,
      reason,
    ]);
  await disable(1, BY_OWNER);
  await disable(2, 'The receiver answered 410 Gone');
  assert.deepEqual(
    (await listTroubledHooks(store, 'all', 0)).map(({ id }) => id),
    [2],
  );
  const { disabled, switchedOff } = await countHooksInScope(store, 'all', 0);
  assert.deepEqual({ disabled, switchedOff }, { disabled: 1, switchedOff: 1 });
  const [counts] = [...(await countHooksByRepository(store, 'ada')).values()];
  assert.equal((counts?.disabled ?? 0) + (counts?.switchedOff ?? 0), 1);
});

forEachEngine('listTroubledHooks() orders the hooks of several owners as those of one', async (store) => {
  const disable = statement(
    'test-disable',
    "UPDATE hooks SET disabled_at_ms = $2, disabled_reason = 'x' WHERE id = $1",
  );
  const fail = statement('test-fail', 'UPDATE endpoint_queue SET failing_since_ms = $2 WHERE hook_id = $1');
  for (let id = 1; id <= 20; id += 1) {
    await insertTestHook(store, { id, url: URL, ownerId: 'ada' });
    await store.write(disable, [id, 1000]);
  }
  for (const [id, sinceMs] of [
    [21, 500],
    [22, 700],
  ] as const) {
    await insertTestHook(store, { id, url: URL, ownerId: 'grace' });
    await enqueueTestDelivery(store, { hookId: id, ownerId: 'grace', url: URL });
    await store.write(fail, [id, sinceMs]);
  }
  await insertTestHook(store, { id: 23, url: URL, ownerId: 'grace' });
  await store.write(disable, [23, 2000]);
  const list = async (scope: readonly string[] | 'all') =>
    (await listTroubledHooks(store, scope, 0)).map(({ id }) => id);
  const listed = [22, 21, 23, ...Array.from({ length: 17 }, (_, index) => index + 1)];
  assert.deepEqual(await list('all'), listed);
  assert.deepEqual(await list(['ada', 'grace']), listed);
});

forEachEngine('listDeliveryMinutes() sums what processes have added, by owner', async (store) => {
  await insertTestHook(store, { id: 1, url: URL, ownerId: 'ada' });
  await insertTestHook(store, { id: 2, url: URL, ownerId: 'ada' });
  await insertTestHook(store, { id: 3, url: URL, ownerId: 'grace' });
  for (const [hookId, ownerId] of [
    [1, 'ada'],
    [2, 'ada'],
    [3, 'grace'],
  ] as const)
    await enqueueTestDelivery(store, { hookId, ownerId, url: URL });
  const durations = [1, 0, 0, 0, 0, 0, 0, 2];
  const counts = { minute: 100, accepted: 2, failed: 1, durations };
  const add = () =>
    addDeliveryMinutes(
      store,
      [1, 2, 3].map((hookId) => ({ hookId, ...counts })),
    );
  await Promise.all([add(), add()]);
  const ofAda = [{ minute: 100, accepted: 8, failed: 4, durations: durations.map((count) => 4 * count) }];
  assert.deepEqual(await listDeliveryMinutes(store, ['ada'], 100), ofAda);
  assert.equal((await listDeliveryMinutes(store, 'all', 100))[0]?.accepted, 12);
  assert.deepEqual(await listDeliveryMinutes(store, ['ada'], 101), []);
  await forgetDeliveryMinutes(store, (100 + 24 * 60 + 1) * 60_000, SWEEP_WITHOUT_PAUSES);
  assert.deepEqual(await listDeliveryMinutes(store, 'all', 0), []);
});
