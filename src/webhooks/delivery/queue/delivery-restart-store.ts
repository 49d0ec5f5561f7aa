/**
 * Restarts one delivery (redelivery, test) or all failed ones since a time (replay), and reserves them for manual attempts. If
 * such an attempt stores no result in time, the workers send the delivery. `delivery-state.ts` explains the columns of a waiting
 * delivery.
 */
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  type Row,
  type Statement,
  type Store,
  statement,
} from '../../../database/store.ts';
import { bindRows, multiRowStatement } from '../../../database/value-rows.ts';
import { firstIdSince, type LogRange, listOldestFirst } from '../log/log-windows-store.ts';
import { IS_NEW, IS_REQUESTED, isReserved, LANE_NUMBERS, setRequested, setReserved } from './delivery-state.ts';
import { REASON_OF_ENDED_PAUSE } from './delivery-store.ts';

// Of two concurrent reservations, the second waits for the row and finds it reserved.
const restartReservedSql: Statement<{ id: number }> = statement(
  'delivery-restart-taken',
  `UPDATE deliveries SET ${setReserved('$3')}
   WHERE hook_id = $1 AND id = $2 AND state <> 'canceled' AND NOT ${isReserved('$4')} RETURNING id`,
);

const restartRequestedSql: Statement<{ id: number }> = statement(
  'delivery-restart',
  `UPDATE deliveries SET ${setRequested('$3')}
   WHERE hook_id = $1 AND id = $2 AND state <> 'canceled' AND NOT ${isReserved('$3')} AND NOT ${IS_REQUESTED}
   RETURNING id`,
);

const stillThereSql: Statement<{ id: number }> = statement(
  'delivery-still-there',
  `SELECT id FROM deliveries WHERE hook_id = $1 AND id = $2 AND state <> 'canceled'`,
);

// Reserves only a new delivery: a second attempt finds it reserved.
const reserveTestSql: Statement<{ id: number; hook_id: number }> = statement(
  'delivery-claim',
  `UPDATE deliveries SET due_at_ms = $2, lane = ${LANE_NUMBERS.retry} WHERE ${IS_NEW} AND id = $1
     AND hook_id = (SELECT c.hook_id FROM delivery_contents c WHERE c.delivery_id = $1)
   RETURNING id, hook_id`,
);

const WAKE = `UPDATE endpoint_queue SET version = version + 1,
     next_at_ms = CASE WHEN parked = 1 OR next_at_ms < $2 THEN next_at_ms ELSE $2 END
   WHERE hook_id = $1`;
const wakeHookQueueSql: Statement = statement('endpoint-wake', WAKE);

/** Condition: the transaction has restarted delivery $3, which is due at $2. So a refused request changes no hook queue. */
const WAS_RESTARTED = `(SELECT COUNT(*) FROM deliveries d WHERE d.hook_id = $1 AND d.id = $3
     AND d.state = 'pending' AND d.due_at_ms = $2 AND d.attempts = d.schedule_from) > 0`;
const wakeRestartedSql: Statement = statement('endpoint-wake-restarted', `${WAKE} AND ${WAS_RESTARTED}`);

/** Reserves the delivery of a test, which was enqueued for later. Returns its hook, or undefined if it was reserved already. */
export async function reserveTest(store: Store, id: number, untilMs: number): Promise<number | undefined> {
  const [row] = await store.write(reserveTestSql, [id, untilMs]);
  return row?.hook_id;
}

/** `absent`: there is no such delivery, or its hook was deleted. `requested`: an earlier request for it is under way. */
export type RestartOutcome = 'restarted' | 'absent' | 'requested';

export interface Reservation {
  readonly nowMs: number;
  /** The workers do not send it before then. */
  readonly untilMs: number;
}

type DeliveryKey = readonly [hookId: number, id: number];

/** Restarts a schedule and reserves its first attempt. */
export async function restartReserved(
  store: Store,
  key: DeliveryKey,
  { nowMs, untilMs }: Reservation,
): Promise<RestartOutcome> {
  const [rows] = await store.writeAll([
    { statement: restartReservedSql, parameters: [...key, untilMs, nowMs] },
    { statement: wakeRestartedSql, parameters: [key[0], untilMs, key[1]] },
  ]);
  return await nameOutcome(store, key, rows);
}

const endReservationSql: Statement<Row> = statement(
  'delivery-give-back',
  `UPDATE deliveries SET due_at_ms = $3 WHERE hook_id = $1 AND id = $2 AND ${isReserved('$3')}`,
);

/** Ends the reservation of a delivery that is not attempted after all: the workers may send it. */
export async function endReservation(store: Store, key: DeliveryKey, nowMs: number): Promise<void> {
  await store.writeAll([
    { statement: endReservationSql, parameters: [...key, nowMs] },
    { statement: wakeHookQueueSql, parameters: [key[0], nowMs] },
  ]);
}

async function nameOutcome(store: Store, key: DeliveryKey, rows: readonly Row[] = []): Promise<RestartOutcome> {
  if (rows.length > 0) return 'restarted';
  return (await store.read(stillThereSql, key)).length > 0 ? 'requested' : 'absent';
}

// A person requests the delivery, so the pause ends, and that of the origin with it. A held hook queue stays held.
const END_PAUSE = `UPDATE endpoint_queue SET parked = 0, paused_since_ms = NULL,
     pause_reason = ${REASON_OF_ENDED_PAUSE}, next_at_ms = $2, version = version + 1
   WHERE hook_id = $1 AND held_since_ms IS NULL AND canceled_at_ms IS NULL`;
const endPauseSql: Statement<Row> = statement('endpoint-end-pause', END_PAUSE);
const endPauseForSql: Statement<Row> = statement('endpoint-end-pause-for', `${END_PAUSE} AND ${WAS_RESTARTED}`);

/** Restarts a schedule and ends the pause of the hook queue; the workers send the delivery in its turn. */
export async function restart(store: Store, key: DeliveryKey, nowMs: number): Promise<RestartOutcome> {
  const [rows] = await store.writeAll([
    { statement: restartRequestedSql, parameters: [...key, nowMs] },
    { statement: endPauseForSql, parameters: [key[0], nowMs, key[1]] },
  ]);
  return await nameOutcome(store, key, rows);
}

// Conditions that may change are repeated on the row itself: after a wait for another request of the delivery, PostgreSQL checks those
// again, and not those of the subselect. The event of a test never happened, so a failed test is not sent again. COUNT instead of
// EXISTS: PostgreSQL turns EXISTS into a join and, without statistics, reads all events for it.
const hasFailed = "state IN ('dead', 'blocked', 'expired')";
const isFailed = `f.hook_id = $1 AND f.id >= $2 AND f.id < $3 AND f.created_at_ms >= $4
  AND f.${hasFailed}
  AND (SELECT COUNT(*) FROM delivery_contents c JOIN events e ON e.id = c.event_id
       WHERE c.delivery_id = f.id AND e.source = 'test') = 0`;
const findFailedSql: Statement<{ id: number }> = statement(
  'delivery-find-failed',
  `SELECT f.id FROM deliveries f WHERE ${isFailed} ORDER BY f.id LIMIT 1`,
);
const restartFailedSql: Statement<{ id: number }> = statement(
  'delivery-restart-some',
  `UPDATE deliveries SET ${setRequested('$5')} WHERE hook_id = $1 AND ${hasFailed} AND id IN
     (SELECT f.id FROM deliveries f WHERE ${isFailed} ORDER BY f.id LIMIT $6)
   RETURNING id`,
);

const RESTARTED_AT_ONCE = 500;

/** Restarts deliveries that were created since then and failed permanently; returns how many. */
export async function replay(store: Store, hookId: number, sinceMs: number, nowMs: number): Promise<number> {
  return await restartAll(store, { hookId, fromId: firstIdSince(sinceMs), nowMs }, ({ fromId, beforeId }) => {
    const range = [hookId, fromId, beforeId, sinceMs];
    return {
      find: { statement: findFailedSql, parameters: range },
      restart: { statement: restartFailedSql, parameters: [...range, nowMs, RESTARTED_AT_ONCE] },
    };
  });
}

// Only retries that are not due yet: those that are due are being sent, or go when the pause ends, and a reserved delivery is about to
// be attempted.
const isWaiting = `hook_id = $1 AND id >= $2 AND id < $3 AND state = 'pending'
  AND lane = ${LANE_NUMBERS.retry} AND attempts > schedule_from AND due_at_ms > $4`;
const findWaitingSql: Statement<{ id: number }> = statement(
  'delivery-find-waiting',
  `SELECT id FROM deliveries WHERE ${isWaiting} ORDER BY id LIMIT 1`,
);
const restartWaitingSql: Statement<{ id: number }> = statement(
  'delivery-restart-waiting',
  `UPDATE deliveries SET ${setRequested('$4')} WHERE ${isWaiting} AND id IN
     (SELECT id FROM deliveries WHERE ${isWaiting} ORDER BY id LIMIT $5)
   RETURNING id`,
);

/** Makes deliveries due that wait for a retry, and ends the pause. A held hook queue stays held. */
export async function restartWaiting(store: Store, hookId: number, nowMs: number): Promise<void> {
  await restartAll(store, { hookId, fromId: 0, nowMs }, ({ fromId, beforeId }) => {
    const range = [hookId, fromId, beforeId, nowMs];
    return {
      find: { statement: findWaitingSql, parameters: range },
      restart: { statement: restartWaitingSql, parameters: [...range, RESTARTED_AT_ONCE] },
    };
  });
}

/** The statements that restart deliveries of a part of the log. */
interface RestartStatements {
  /** The first that can be restarted. */
  readonly find: BoundStatement & { readonly statement: Statement<{ id: number }> };
  /** Restarts a page of those that can be restarted. */
  readonly restart: BoundStatement;
}

interface Restart extends Pick<LogRange, 'hookId' | 'fromId'> {
  readonly nowMs: number;
}

type BindRestart = (range: LogRange) => RestartStatements;

/** Ends the pause once, and goes through the log; returns how many were restarted. A pause that begins meanwhile stays. */
async function restartAll(store: Store, restart: Restart, bind: BindRestart): Promise<number> {
  await store.writeAll([{ statement: endPauseSql, parameters: [restart.hookId, restart.nowMs] }]);
  let count = 0;
  for await (const window of listOldestFirst(store, restart))
    count += await restartWindow(store, { ...window, nowMs: restart.nowMs }, bind);
  return count;
}

/**
 * A read finds what can be restarted, since a write that scans a long log would delay the writes of all owners. Each row is visited
 * once: a restarted delivery may have failed again already. A page that is not full need not be the last one, since other requests may
 * have changed rows of it.
 */
async function restartWindow(
  store: Store,
  { nowMs, ...window }: Restart & LogRange,
  bind: BindRestart,
): Promise<number> {
  let count = 0;
  for (let fromId = window.fromId; ; ) {
    const statements = bind({ ...window, fromId });
    const [found] = await store.read(statements.find.statement, statements.find.parameters);
    if (found === undefined) return count;
    const wake = { statement: wakeHookQueueSql, parameters: [window.hookId, nowMs] };
    const [rows = []] = await store.writeAll([statements.restart, wake]);
    count += rows.length;
    fromId = Math.max(found.id, ...rows.map((row) => row.id as number)) + 1;
  }
}

const waitsForOrigin = `origin = $1 AND parked = 1 AND pause_reason = 'no_connection'
  AND held_since_ms IS NULL AND canceled_at_ms IS NULL`;
const waitingForOriginSql = statement<{ hook_id: number }>(
  'endpoints-waiting-for-origin',
  `SELECT hook_id FROM endpoint_queue WHERE ${waitsForOrigin} ORDER BY hook_id`,
);
const wakeOfOriginSql: Statement = statement(
  'endpoint-wake-of-origin',
  `UPDATE endpoint_queue SET parked = 0, next_at_ms = $3, version = version + 1 WHERE hook_id = $2 AND ${waitsForOrigin}`,
);

/** The hooks whose queues are paused only because their origin refused connections, in ascending order. */
export async function listWaitingForOrigin(store: Store, origin: string): Promise<number[]> {
  return (await store.read(waitingForOriginSql, [origin])).map((row) => row.hook_id);
}

/**
 * Makes these hook queues due, if they still are paused only because their origin refused connections. Row by row in ascending
 * order, since one statement would lock the rows in an undefined order.
 */
export async function wakeForOrigin(
  store: Store,
  { origin, hookIds }: { readonly origin: string; readonly hookIds: readonly number[] },
  nowMs: number,
): Promise<void> {
  if (hookIds.length === 0) return;
  await store.writeAll(hookIds.map((hookId) => ({ statement: wakeOfOriginSql, parameters: [origin, hookId, nowMs] })));
}

// A delivery that ended without a response cannot have got that of another request. The event of a test never happened, so a test is
// not sent again. COUNT instead of EXISTS: PostgreSQL turns EXISTS into a join and, without statistics, reads all events for it.
const doubtDeliveriesSql = multiRowStatement(
  'delivery-doubt',
  { id: 'int' },
  ({ values, v, more }) =>
    `UPDATE deliveries SET state = 'pending', lane = ${LANE_NUMBERS.retry}, due_at_ms = ${more(1)}
     FROM ${values} JOIN delivery_contents c ON c.delivery_id = ${v.id}
     WHERE deliveries.hook_id = c.hook_id AND deliveries.id = ${v.id}
       AND (deliveries.state = 'succeeded' OR (deliveries.state = 'dead' AND deliveries.status > 0))
       AND (SELECT COUNT(*) FROM events e WHERE e.id = c.event_id AND e.source = 'test') = 0
     RETURNING deliveries.hook_id`,
);

interface Doubt {
  readonly deliveryIds: readonly number[];
  readonly nowMs: number;
}

/** Runs in one transaction, so that a crash in between leaves no pending delivery whose hook queue sleeps. */
export const reopenDoubtful: Procedure<Doubt, number> = conditionalProcedure(
  import.meta.url,
  'reopenDoubtful',
  async (transaction, { deliveryIds, nowMs }) => {
    const ids = deliveryIds.map((id) => ({ id }));
    const answers = await transaction.runAll(bindRows(doubtDeliveriesSql, ids, { more: [nowMs] }));
    const reopened = answers.flat().map((row) => row.hook_id as number);
    const hookIds = [...new Set(reopened)].sort((one, other) => one - other);
    await transaction.runAll(hookIds.map((hookId) => ({ statement: wakeHookQueueSql, parameters: [hookId, nowMs] })));
    return reopened.length;
  },
);

/**
 * Restarts deliveries that ended with responses which may have belonged to other requests; returns how many. If such a response has
 * disabled the hook, they are held until it is enabled.
 */
export async function reopenUnverified(store: Store, deliveryIds: readonly number[], nowMs: number): Promise<number> {
  return deliveryIds.length === 0 ? 0 : await store.call(reopenDoubtful, { deliveryIds, nowMs });
}
