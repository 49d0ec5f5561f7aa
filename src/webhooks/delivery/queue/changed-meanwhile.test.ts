/**
 * Statements choose their rows in a subselect, and wait for one that another transaction changes. After that PostgreSQL checks the
 * conditions on the row itself again, but not those of the subselect.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findReasonToSkip } from '../../../../test/support/store/engines.ts';
import { withLockedRows } from '../../../../test/support/store/locked-rows.ts';
import { enqueueTestDelivery } from '../../../../test/support/webhooks/deliveries-store.ts';
import { type Store, statement } from '../../../database/store.ts';
import { SWEEP_WITHOUT_PAUSES } from '../../../database/sweep.ts';
import { replay, restartWaiting } from './delivery-restart-store.ts';
import { deleteLogBefore, expireHeld } from './delivery-sweep-store.ts';

const NOW = Date.UTC(2026, 5, 1);
const HOUR_MS = 3_600_000;

const stateSql = statement<{ state: string; lane: number; contents: number }>(
  'test-state-and-contents',
  `SELECT state, lane, (SELECT COUNT(*) FROM delivery_contents c WHERE c.delivery_id = deliveries.id) AS contents
   FROM deliveries`,
);
const holdSql = statement('test-hold-since', 'UPDATE endpoint_queue SET held_since_ms = $1, parked = 1');
const setSql = statement('test-set-ended', `UPDATE deliveries SET state = $1, lane = 1, attempts = 3, due_at_ms = $2`);

/** Changes the row as the statements of a redelivery do. */
const REQUESTED = `UPDATE deliveries SET state = 'pending', lane = 0, due_at_ms = ${NOW}, schedule_from = attempts`;
const RESERVED = `UPDATE deliveries SET state = 'pending', lane = 1, due_at_ms = ${NOW + 20_000}, schedule_from = attempts`;

interface Case {
  readonly title: string;
  readonly state: string;
  readonly redelivery: string;
  readonly lane: number;
  readonly act: (store: Store) => Promise<unknown>;
}
const cases: Case[] = [
  {
    title: 'deleteLogBefore() keeps a delivery that is requested again',
    state: 'dead',
    redelivery: REQUESTED,
    lane: 0,
    act: (store) => deleteLogBefore(store, Number.MAX_SAFE_INTEGER, SWEEP_WITHOUT_PAUSES),
  },
  {
    title: 'expireHeld() keeps a delivery that is requested again',
    state: 'pending',
    redelivery: REQUESTED,
    lane: 0,
    act: async (store) => {
      await store.write(holdSql, [NOW - HOUR_MS]);
      return await expireHeld(store, NOW, SWEEP_WITHOUT_PAUSES);
    },
  },
  {
    title: 'replay() leaves a delivery that is reserved',
    state: 'dead',
    redelivery: RESERVED,
    lane: 1,
    act: (store) => replay(store, 1, 0, NOW),
  },
  {
    title: 'restartWaiting() leaves a delivery that is reserved',
    state: 'pending',
    redelivery: RESERVED,
    lane: 1,
    act: (store) => restartWaiting(store, 1, NOW),
  },
];
for (const { title, state, redelivery, lane, act } of cases)
  test(`${title} while it waits for the row`, { skip: findReasonToSkip('postgres') }, () =>
    withLockedRows(async ({ store, change }) => {
      await enqueueTestDelivery(store, { hookId: 1, url: 'http://127.0.0.1:9/', nowMs: NOW - 2 * HOUR_MS });
      await store.write(setSql, [state, state === 'pending' ? NOW + HOUR_MS : NOW - HOUR_MS]);
      await change(redelivery, () => act(store));
      assert.deepEqual(await store.read(stateSql), [{ state: 'pending', lane, contents: 1 }]);
    }),
  );
