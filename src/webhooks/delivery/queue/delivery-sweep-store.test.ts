import assert from 'node:assert/strict';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { enqueueTestDelivery, readDelivery } from '../../../../test/support/webhooks/deliveries-store.ts';
import { type Store, statement } from '../../../database/store.ts';
import { correctTimes, sweepDeliveries } from '../worker/delivery-sweeper.ts';
import { cancelHookQueueStatement, holdHookQueueStatement } from './delivery-store.ts';

const url = 'http://127.0.0.1:9/';
const NOW = Date.UTC(2026, 5, 1);
const DAY_MS = 86_400_000;
const HOOKS = 5;

/** The store, with the names of the statements that are written and read one by one. */
function recordStatements(store: Store) {
  const written: string[] = [];
  const readNames: string[] = [];
  const write: Store['write'] = async (one, parameters) => {
    written.push(one.name);
    return await store.write(one, parameters);
  };
  const read: Store['read'] = async (one, parameters) => {
    readNames.push(one.name);
    return await store.read(one, parameters);
  };
  return { recorded: { ...store, write, read }, written, readNames };
}

async function enqueue(store: Store, hookId: number, nowMs = NOW): Promise<number> {
  return await enqueueTestDelivery(store, { hookId, url, nowMs });
}

forEachEngine('sweepDeliveries() writes nothing for hooks that have nothing to expire or cancel', async (store) => {
  const expiring: number[] = [];
  const kept: number[] = [];
  const canceled: number[] = [];
  for (let hookId = 1; hookId <= HOOKS; hookId += 1) {
    expiring.push(await enqueue(store, hookId, NOW - 9 * DAY_MS));
    kept.push(await enqueue(store, hookId, NOW - DAY_MS));
    await store.writeAll([holdHookQueueStatement(hookId, NOW - 8 * DAY_MS)]);
    canceled.push(await enqueue(store, HOOKS + hookId));
    await store.writeAll([cancelHookQueueStatement(HOOKS + hookId, NOW)]);
  }
  const { recorded, written } = recordStatements(store);
  const countEndings = () => written.filter((name) => /^sweep-(?:expire|cancel)/.test(name)).length;
  const { expired, canceled: ofDeleted } = await sweepDeliveries(recorded, NOW);
  assert.deepEqual([expired, ofDeleted], [HOOKS, HOOKS]);
  const states = async (ids: readonly number[]) =>
    new Set(await Promise.all(ids.map(async (id) => (await readDelivery(store, id)).state)));
  assert.deepEqual(await states(expiring), new Set(['expired']));
  assert.deepEqual(await states(kept), new Set(['pending']));
  assert.deepEqual(await states(canceled), new Set(['canceled']));
  const before = countEndings();
  assert.ok(before >= 2 * HOOKS);
  await sweepDeliveries(recorded, NOW + 60_000);
  assert.equal(countEndings(), before);
});

const retrySql = statement(
  'test-retry-later',
  'UPDATE deliveries SET lane = 1, attempts = 9, due_at_ms = $2 WHERE id = $1',
);

forEachEngine('sweepDeliveries() expires a held retry that is due later, and no reserved delivery', async (store) => {
  const retry = await enqueue(store, 1, NOW - 8 * DAY_MS);
  const reserved = await enqueue(store, 1, NOW - 8 * DAY_MS);
  for (const id of [retry, reserved]) await store.write(retrySql, [id, NOW + 1000]);
  await store.write(statement('test-reserve', 'UPDATE deliveries SET schedule_from = attempts WHERE id = $1'), [
    reserved,
  ]);
  await store.writeAll([holdHookQueueStatement(1, NOW - 8 * DAY_MS + 1)]);
  assert.equal((await sweepDeliveries(store, NOW)).expired, 1);
  assert.equal((await readDelivery(store, retry)).state, 'expired');
  assert.equal((await readDelivery(store, reserved)).state, 'pending');
});

forEachEngine('correctTimes() reads only deliveries of hooks with a late due time', async (store) => {
  for (let hookId = 1; hookId <= HOOKS; hookId += 1) await enqueue(store, hookId);
  await enqueue(store, HOOKS, NOW + DAY_MS);
  const { recorded, readNames } = recordStatements(store);
  assert.equal(await correctTimes(recorded, NOW, { longestMs: Number.POSITIVE_INFINITY }), 1);
  assert.equal(readNames.filter((name) => name === 'deliveries-late').length, 1);
});
