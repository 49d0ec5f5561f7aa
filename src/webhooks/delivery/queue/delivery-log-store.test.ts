import assert from 'node:assert/strict';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { enqueueTestDelivery, fillTestLog, readDelivery } from '../../../../test/support/webhooks/deliveries-store.ts';
import { type Store, statement } from '../../../database/store.ts';
import { readHold } from '../../hooks/hook-status-store.ts';
import { WINDOW_ROWS } from '../log/log-windows-store.ts';
import { sweepDeliveries } from '../worker/delivery-sweeper.ts';
import { findDelivery, type LogFilter, listDeliveries } from './delivery-log-store.ts';
import { cancelHookQueueStatement, holdHookQueueStatement } from './delivery-store.ts';

const url = 'http://127.0.0.1:9/';
const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 5, 1);

const setStateSql = statement('test-set-state', 'UPDATE deliveries SET state = $2, attempts = $3 WHERE id = $1');
const countRowsSql = statement<{ deliveries: number; contents: number; endpoints: number }>(
  'test-count-rows',
  `SELECT (SELECT COUNT(*) FROM deliveries) AS deliveries, (SELECT COUNT(*) FROM delivery_contents) AS contents,
     (SELECT COUNT(*) FROM endpoint_queue) AS endpoints`,
);

function filter(overrides: Partial<LogFilter> = {}): LogFilter {
  const bounds = { sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER, beforeId: Number.MAX_SAFE_INTEGER, limit: 100 };
  return { hookId: 1, state: undefined, eventKind: undefined, ...bounds, ...overrides };
}

async function enqueueAt(store: Store, nowMs: number, hookId = 1): Promise<number> {
  return await enqueueTestDelivery(store, { hookId, url, nowMs });
}

forEachEngine('the log lists the newest first, by state, kind, time and page', async (store) => {
  const ids: number[] = [];
  for (let day = 0; day < 4; day += 1) ids.push(await enqueueAt(store, NOW + day * DAY_MS));
  await enqueueAt(store, NOW, 2);
  await store.write(setStateSql, [ids[1]!, 'dead', 10]);
  const idsOf = async (overrides: Partial<LogFilter>) =>
    (await listDeliveries(store, filter(overrides))).map((row) => row.id);
  assert.deepEqual(await idsOf({}), ids.toReversed());
  assert.deepEqual(await idsOf({ state: 'dead' }), [ids[1]]);
  assert.deepEqual(await idsOf({ eventKind: 'issue' }), []);
  assert.deepEqual(await idsOf({ sinceMs: NOW + DAY_MS, untilMs: NOW + 3 * DAY_MS }), [ids[2], ids[1]]);
  assert.deepEqual(await idsOf({ beforeId: ids[2]!, limit: 1 }), [ids[1]]);
});

forEachEngine('a delivery is found under its own hook only, with its bytes', async (store) => {
  const id = await enqueueAt(store, NOW);
  assert.equal(await findDelivery(store, 2, id), undefined);
  const found = await findDelivery(store, 1, id);
  assert.equal(Buffer.from(found?.delivery.body ?? []).toString(), '{"a":1}');
  assert.deepEqual(found?.attempts, []);
});

forEachEngine('held deliveries expire after seven days, others do not', async (store) => {
  const old = await enqueueAt(store, NOW);
  const fresh = await enqueueAt(store, NOW + 6 * DAY_MS);
  const other = await enqueueAt(store, NOW, 2);
  await store.writeAll([holdHookQueueStatement(1, NOW)]);
  assert.equal((await readHold(store, 1, 0)).isHeld, true);
  assert.equal((await sweepDeliveries(store, NOW + 7 * DAY_MS)).expired, 0);
  assert.equal((await sweepDeliveries(store, NOW + 7 * DAY_MS + 1)).expired, 1);
  assert.equal((await readDelivery(store, old)).state, 'expired');
  assert.equal((await readDelivery(store, fresh)).state, 'pending');
  assert.equal((await readDelivery(store, other)).state, 'pending');
});

forEachEngine('pending deliveries of a deleted hook are cancelled', async (store) => {
  for (let count = 0; count < 3; count += 1) await enqueueAt(store, NOW);
  const done = await enqueueAt(store, NOW);
  await store.write(setStateSql, [done, 'succeeded', 1]);
  await store.writeAll([cancelHookQueueStatement(1, NOW)]);
  assert.equal((await sweepDeliveries(store, NOW)).canceled, 3);
  assert.equal((await readDelivery(store, done)).state, 'succeeded');
});

forEachEngine(
  'the log is deleted after 30 days with attempts and contents, except pending deliveries',
  async (store) => {
    const now = Date.now();
    for (let count = 0; count < 5; count += 1) await store.write(setStateSql, [await enqueueAt(store, now), 'dead', 1]);
    await enqueueAt(store, now);
    assert.equal((await sweepDeliveries(store, now)).deleted, 0);
    assert.equal((await sweepDeliveries(store, now + 31 * DAY_MS)).deleted, 5);
    assert.deepEqual(await store.read(countRowsSql), [{ deliveries: 1, contents: 1, endpoints: 1 }]);
  },
);

forEachEngine('the hook queue of a deleted hook goes with the last of its log', async (store) => {
  const now = Date.now();
  await enqueueAt(store, now);
  await store.writeAll([cancelHookQueueStatement(1, now)]);
  await sweepDeliveries(store, now + 31 * DAY_MS);
  assert.deepEqual(await store.read(countRowsSql), [{ deliveries: 0, contents: 0, endpoints: 0 }]);
});

const ROWS = 3 * WINDOW_ROWS;

forEachEngine('a search finds what matches anywhere in a long log, page after page', async (store) => {
  await fillTestLog(store, { hookId: 1, rows: ROWS });
  const failed = [1, WINDOW_ROWS - 1, WINDOW_ROWS, WINDOW_ROWS + 1, ROWS];
  for (const id of failed) await store.write(setStateSql, [id, 'dead', 1]);
  const idsOf = async (overrides: Partial<LogFilter>) =>
    (await listDeliveries(store, filter(overrides))).map((row) => row.id);
  assert.deepEqual(await idsOf({ state: 'dead' }), failed.toReversed());
  assert.deepEqual(await idsOf({ state: 'dead', limit: 2, offset: 2 }), [WINDOW_ROWS, WINDOW_ROWS - 1]);
  assert.deepEqual(await idsOf({ state: 'dead', offset: 5 }), []);
  assert.deepEqual(await idsOf({ limit: 1, offset: 2 * WINDOW_ROWS }), [WINDOW_ROWS]);
  assert.deepEqual(await idsOf({ state: 'dead', fromId: WINDOW_ROWS, beforeId: ROWS }), [WINDOW_ROWS + 1, WINDOW_ROWS]);
});

forEachEngine('a search of one owner leaves the event loop to others, also in many requests at once', async (store) => {
  await fillTestLog(store, { hookId: 1, rows: ROWS });
  let turns = 0;
  let isOver = false;
  const countTurn = () => {
    turns += 1;
    if (!isOver) setImmediate(countTurn);
  };
  setImmediate(countTurn);
  const searches = Array.from({ length: 10 }, () => listDeliveries(store, filter({ status: { from: 418, to: 418 } })));
  assert.deepEqual((await Promise.all(searches)).flat(), []);
  isOver = true;
  assert.ok(turns >= 10 * (ROWS / WINDOW_ROWS), `${turns} turns`);
});
