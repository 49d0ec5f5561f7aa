import assert from 'node:assert/strict';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  fillTestLog,
  insertTestEvent,
  insertTestHook,
  readDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { type Store, statement } from '../../../database/store.ts';
import { SWEEP_WITHOUT_PAUSES } from '../../../database/sweep.ts';
import { WINDOW_ROWS } from '../log/log-windows-store.ts';
import { reopenUnverified, replay, restart, restartReserved, restartWaiting } from './delivery-restart-store.ts';
import { expireHeld } from './delivery-sweep-store.ts';

const url = 'http://127.0.0.1:9/';
const NOW = Date.UTC(2026, 5, 1);

const setStateSql = statement('test-set-state', 'UPDATE deliveries SET state = $2, attempts = $3 WHERE id = $1');

async function enqueueAt(store: Store, nowMs: number): Promise<number> {
  return await enqueueTestDelivery(store, { hookId: 1, url, nowMs });
}

forEachEngine('a delivery that is restarted has a new schedule, whatever its state was', async (store) => {
  const id = await enqueueAt(store, NOW);
  await store.write(setStateSql, [id, 'dead', 10]);
  const taking = { nowMs: NOW, untilMs: NOW + 5 };
  assert.equal(await restartReserved(store, [1, id], taking), 'restarted');
  assert.deepEqual(await readDelivery(store, id), {
    id,
    state: 'pending',
    attempts: 10,
    status: 0,
    due_at_ms: NOW + 5,
  });
  const [row] = await store.read(
    statement<{ schedule_from: number; lane: number }>(
      'test-schedule',
      'SELECT schedule_from, lane FROM deliveries WHERE id = $1',
    ),
    [id],
  );
  assert.deepEqual(row, { schedule_from: 10, lane: 1 });
  assert.equal(await restartReserved(store, [1, id], taking), 'requested', 'while another worker owns it');
  assert.equal(await restart(store, [1, id], NOW + 4), 'requested');
  assert.equal(
    await restartReserved(store, [1, id], { nowMs: NOW + 5, untilMs: NOW + 9 }),
    'restarted',
    'after its time',
  );
  assert.equal(await restartReserved(store, [2, id], taking), 'absent');
  await store.write(setStateSql, [id, 'canceled', 10]);
  assert.equal(await restartReserved(store, [1, id], taking), 'absent');
});

forEachEngine('a replay sends again what failed for good since then, and nothing else', async (store) => {
  const states = ['dead', 'blocked', 'expired', 'succeeded', 'canceled', 'pending'];
  const ids: number[] = [];
  for (const state of states) {
    const id = await enqueueAt(store, NOW);
    await store.write(setStateSql, [id, state, 3]);
    ids.push(id);
  }
  const old = await enqueueAt(store, NOW - 1);
  await store.write(setStateSql, [old, 'dead', 3]);
  assert.equal(await replay(store, 1, NOW, NOW + 9), 3);
  const after = await Promise.all(ids.map(async (id) => (await readDelivery(store, id)).state));
  assert.deepEqual(after, ['pending', 'pending', 'pending', 'succeeded', 'canceled', 'pending']);
  assert.equal((await readDelivery(store, old)).state, 'dead');
});

/** The store, with the names of the statements that are written. */
function recordWrites(store: Store): { readonly recorded: Store; readonly names: string[] } {
  const names: string[] = [];
  const writeAll: Store['writeAll'] = async (statements) => {
    names.push(...statements.map((one) => one.statement.name));
    return await store.writeAll(statements);
  };
  return { recorded: { ...store, writeAll }, names };
}

forEachEngine(
  'a long log of one hook is searched without a write, for which other owners would wait',
  async (store) => {
    await fillTestLog(store, { hookId: 1, rows: 3 * WINDOW_ROWS });
    const { recorded, names } = recordWrites(store);
    assert.equal(await replay(recorded, 1, 0, NOW), 0);
    await restartWaiting(recorded, 1, NOW);
    assert.deepEqual(names, ['endpoint-end-pause', 'endpoint-end-pause']);
  },
);

forEachEngine('a replay finds what failed anywhere in a long log', async (store) => {
  await fillTestLog(store, { hookId: 1, rows: 3 * WINDOW_ROWS });
  const failed = [1, WINDOW_ROWS, WINDOW_ROWS + 1, 3 * WINDOW_ROWS];
  for (const id of failed) await store.write(setStateSql, [id, 'dead', 3]);
  assert.equal(await replay(store, 1, 0, NOW), failed.length);
  for (const id of failed) assert.equal((await readDelivery(store, id)).state, 'pending');
  await store.write(statement('test-fail-all', `UPDATE deliveries SET state = 'dead' WHERE hook_id = $1`), [1]);
  assert.equal(await replay(store, 1, 0, NOW), 3 * WINDOW_ROWS);
});

const pausedSql = statement<{ parked: number; version: number }>(
  'test-paused',
  'SELECT parked, version FROM endpoint_queue WHERE hook_id = 1',
);
const pauseSql = statement('test-pause', 'UPDATE endpoint_queue SET parked = 1 WHERE hook_id = 1');

const endAllSql = statement(
  'test-end-all',
  'UPDATE deliveries SET state = $2, lane = 1, attempts = 3, due_at_ms = $3 WHERE hook_id = $1',
);
const requests: [what: string, state: string, request: (store: Store) => Promise<unknown>][] = [
  ['a replay', 'dead', (store) => replay(store, 1, 0, NOW)],
  ['sending what waits', 'pending', (store) => restartWaiting(store, 1, NOW)],
];
for (const [what, state, request] of requests)
  forEachEngine(`a pause that begins during ${what} stays`, async (store) => {
    const last = await enqueueAt(store, NOW);
    await fillTestLog(store, { hookId: 1, rows: 1000 });
    await store.write(endAllSql, [1, state, NOW + 1]);
    await store.write(pauseSql);
    const parkedAfterPages: unknown[] = [];
    const writeAll: Store['writeAll'] = async (statements) => {
      const answers = await store.writeAll(statements);
      if (!statements.some((one) => one.statement.name.startsWith('delivery-restart'))) return answers;
      parkedAfterPages.push((await store.read(pausedSql))[0]?.parked);
      await store.write(pauseSql);
      return answers;
    };
    await request({ ...store, writeAll });
    assert.deepEqual(parkedAfterPages, [0, 1, 1], 'the request has ended the earlier pause');
    const restarted = await readDelivery(store, last);
    assert.deepEqual([restarted.state, restarted.due_at_ms], ['pending', NOW]);
  });

forEachEngine(
  'a redelivery that is refused, or of a delivery that is not there, leaves the pause as it is',
  async (store) => {
    const id = await enqueueAt(store, NOW);
    await store.write(setStateSql, [id, 'dead', 10]);
    assert.equal(await restart(store, [1, id], NOW), 'restarted');
    await store.write(pauseSql);
    const [paused] = await store.read(pausedSql);
    const later = NOW + 1;
    assert.equal(await restart(store, [1, id], later), 'requested');
    assert.equal(await restart(store, [1, id + 1], later), 'absent');
    assert.equal(await restartReserved(store, [1, id + 1], { nowMs: later, untilMs: later + 9 }), 'absent');
    assert.deepEqual(await store.read(pausedSql), [paused]);
    await store.write(setStateSql, [id, 'dead', 10]);
    assert.equal(await restart(store, [1, id], later), 'restarted');
    assert.equal((await store.read(pausedSql))[0]?.parked, 0);
  },
);

const holdSql = statement('test-hold', 'UPDATE endpoint_queue SET held_since_ms = $1, parked = 1 WHERE hook_id = 1');
const DAY_MS = 24 * 3_600_000;

forEachEngine(
  'a held delivery that is requested again expires as long after the request as a new one',
  async (store) => {
    const held = await enqueueAt(store, NOW);
    const requested = await enqueueAt(store, NOW);
    await store.write(holdSql, [NOW]);
    const requestedMs = NOW + 8 * DAY_MS;
    await store.write(setStateSql, [requested, 'dead', 10]);
    assert.equal(await restart(store, [1, requested], requestedMs), 'restarted');
    assert.equal(await expireHeld(store, requestedMs + 1 - 7 * DAY_MS, SWEEP_WITHOUT_PAUSES), 1);
    assert.equal((await readDelivery(store, held)).state, 'expired');
    assert.equal((await readDelivery(store, requested)).state, 'pending');
    assert.equal(await expireHeld(store, requestedMs + 1, SWEEP_WITHOUT_PAUSES), 1);
    assert.equal((await readDelivery(store, requested)).state, 'expired');
  },
);

const endSql = statement('test-end', 'UPDATE deliveries SET state = $2, status = $3, attempts = 1 WHERE id = $1');
const ended: [state: string, status: number, isReopened: boolean][] = [
  ['succeeded', 200, true],
  ['dead', 410, true],
  ['dead', 500, true],
  ['dead', 0, false],
  ['blocked', 0, false],
  ['canceled', 200, false],
];

forEachEngine('what a doubtful response has ended is sent again, be it accepted or refused', async (store) => {
  const ids: number[] = [];
  for (const [state, status] of ended) {
    const id = await enqueueAt(store, NOW);
    await store.write(endSql, [id, state, status]);
    ids.push(id);
  }
  assert.equal(await reopenUnverified(store, ids, NOW + 1), 3);
  for (const [index, [state, , isReopened]] of ended.entries())
    assert.equal((await readDelivery(store, ids[index]!)).state, isReopened ? 'pending' : state);
});

forEachEngine('a test that a doubtful response has ended is not sent again', async (store) => {
  await insertTestHook(store, { id: 1, url });
  await insertTestEvent(store, 1, 'test');
  for (const [state, status] of ended) {
    const id = await enqueueAt(store, NOW);
    await store.write(endSql, [id, state, status]);
    assert.equal(await reopenUnverified(store, [id], NOW + 1), 0);
    assert.equal((await readDelivery(store, id)).state, state);
  }
});

const hideHookQueuesSql = statement('test-hide-hook-queues', 'ALTER TABLE endpoint_queue RENAME TO hidden_queue');

forEachEngine('a doubtful delivery is not reopened without its hook queue, which would sleep on', async (store) => {
  const id = await enqueueAt(store, NOW);
  await store.write(endSql, [id, 'succeeded', 200]);
  await store.write(hideHookQueuesSql);
  await assert.rejects(reopenUnverified(store, [id], NOW + 1));
  assert.equal((await readDelivery(store, id)).state, 'succeeded');
});
