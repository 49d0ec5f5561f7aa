import assert from 'node:assert/strict';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { enqueueTestDelivery, fillTestLog, readDelivery } from '../../../../test/support/webhooks/deliveries-store.ts';
import { ID_EPOCH_MS, IDS_PER_MS, idAtMs } from '../../../database/ids.ts';
import { type Store, statement } from '../../../database/store.ts';
import { readHold } from '../../hooks/hook-status-store.ts';
import { WINDOW_ROWS } from '../log/log-windows-store.ts';
import { sweepDeliveries } from '../worker/delivery-sweeper.ts';
import { findDelivery, type LogFilter, listDeliveries } from './delivery-log-store.ts';
import { replay } from './delivery-restart-store.ts';
import { cancelHookQueueStatement, holdHookQueueStatement } from './delivery-store.ts';
import { createDeliveryUuid, periodOfUuid } from './delivery-uuid.ts';

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

const START = Date.UTC(2026, 5, 1);
/** Gives the deliveries of `fillTestLog` the times and ids of one delivery each ten seconds. */
const spreadSql = [
  statement(
    'test-spread',
    `UPDATE deliveries SET created_at_ms = $1 + id * 10000, id = ($1 + id * 10000 - ${ID_EPOCH_MS}) * ${IDS_PER_MS}`,
  ),
  statement(
    'test-spread-contents',
    `UPDATE delivery_contents SET delivery_id = ($1 + delivery_id * 10000 - ${ID_EPOCH_MS}) * ${IDS_PER_MS}`,
  ),
];
const setUuidSql = statement('test-set-uuid', 'UPDATE delivery_contents SET uuid = $2 WHERE delivery_id = $1');
const timeOf = (row: number) => START + row * 10_000;

async function fillSpreadLog(store: Store): Promise<void> {
  await fillTestLog(store, { hookId: 1, rows: ROWS });
  for (const spread of spreadSql) await store.write(spread, [START]);
}

/** The store, and how many reads it has made. */
function countReads(store: Store): { readonly counting: Store; readonly reads: { count: number } } {
  const reads = { count: 0 };
  const read: Store['read'] = async (...given) => {
    reads.count += 1;
    return await store.read(...given);
  };
  return { counting: { ...store, read }, reads };
}

forEachEngine('a search in a period, by UUID too, reads only that part of a long log', async (store) => {
  await fillSpreadLog(store);
  const uuid = createDeliveryUuid(timeOf(3), new Uint8Array(10));
  await store.write(setUuidSql, [idAtMs(timeOf(3)), uuid]);
  const unknown = createDeliveryUuid(timeOf(4), new Uint8Array(10).fill(1));
  const cases: [overrides: Partial<LogFilter>, rows: number[]][] = [
    [{ sinceMs: timeOf(ROWS - 1) }, [ROWS, ROWS - 1]],
    [{ untilMs: timeOf(3) }, [2, 1]],
    [{ sinceMs: timeOf(WINDOW_ROWS), untilMs: timeOf(WINDOW_ROWS + 1) }, [WINDOW_ROWS]],
    [{ uuid, ...periodOfUuid(uuid) }, [3]],
    [{ uuid: unknown, ...periodOfUuid(unknown) }, []],
  ];
  for (const [overrides, rows] of cases) {
    const { counting, reads } = countReads(store);
    const found = await listDeliveries(counting, filter(overrides));
    assert.deepEqual(
      found.map(({ id }) => id),
      rows.map((row) => idAtMs(timeOf(row))),
    );
    assert.ok(reads.count <= 3, `${reads.count} reads`);
  }
  const { counting, reads } = countReads(store);
  assert.equal(await replay(counting, 1, timeOf(ROWS), timeOf(ROWS)), 0);
  assert.ok(reads.count <= 3, `${reads.count} reads for a replay`);
});

const setBackSql = statement('test-set-back', 'UPDATE deliveries SET created_at_ms = created_at_ms - $1');

forEachEngine('a delivery whose id is ahead of the clock, which was set back, is found by its time', async (store) => {
  await fillSpreadLog(store);
  await store.write(setBackSql, [DAY_MS]);
  const createdMs = timeOf(3) - DAY_MS;
  const found = await listDeliveries(store, filter({ sinceMs: createdMs, untilMs: createdMs + 1 }));
  assert.deepEqual(
    found.map(({ id }) => id),
    [idAtMs(timeOf(3))],
  );
});

const setLaterBackSql = statement(
  'test-set-later-back',
  'UPDATE deliveries SET created_at_ms = created_at_ms - $1 WHERE id > $2',
);

forEachEngine('a delivery after a row of the time in which the clock was ahead is found by its time', async (store) => {
  await fillSpreadLog(store);
  await store.write(setLaterBackSql, [DAY_MS, idAtMs(timeOf(3))]);
  const createdMs = timeOf(5) - DAY_MS;
  const found = await listDeliveries(store, filter({ sinceMs: createdMs, untilMs: createdMs + 1 }));
  assert.deepEqual(
    found.map(({ id }) => id),
    [idAtMs(timeOf(5))],
  );
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
