/** Restarts deliveries that have ended, or that wait for a retry or behind a pause. */
import { type Row, type Statement, type Step, type Store, statement } from '../../../database/store.ts';
import { renderValueRows, wideStatement, wideSteps } from '../../../database/value-rows.ts';
import { RECONNECTED } from '../schedule/pause-reason.ts';

// A new schedule begins: its attempts are counted from here.
const restartIn = (lane: 0 | 1) => `state = 'pending', lane = ${lane}, due_at_ms = $3, schedule_from = attempts`;

// A manual attempt owns its delivery until a time beyond its own deadline; if no result is stored by then, the workers send
// it. Only such a delivery waits in the lane of retries without an attempt in its schedule.
const isTaken = (now: string) => `(state = 'pending' AND lane = 1 AND attempts = schedule_from AND due_at_ms > ${now})`;

// Of two that take it at once one waits for the row, and finds it taken.
const restartTaken: Statement<{ id: number }> = statement(
  'delivery_restart_taken',
  `UPDATE deliveries SET ${restartIn(1)}
   WHERE hook_id = $1 AND id = $2 AND state <> 'canceled' AND NOT ${isTaken('$4')} RETURNING id`,
);

// After its first attempt a delivery waits in the lane of first attempts only because a person has asked for it.
const restartWaiting: Statement<{ id: number }> = statement(
  'delivery_restart',
  `UPDATE deliveries SET ${restartIn(0)}
   WHERE hook_id = $1 AND id = $2 AND state <> 'canceled' AND NOT ${isTaken('$3')}
     AND NOT (state = 'pending' AND lane = 0 AND attempts > 0) RETURNING id`,
);

const stillThere: Statement<{ id: number }> = statement(
  'delivery_still_there',
  `SELECT id FROM deliveries WHERE hook_id = $1 AND id = $2 AND state <> 'canceled'`,
);

// Only once: the lane tells that it was taken.
const take: Statement<{ id: number; hook_id: number }> = statement(
  'delivery_claim',
  `UPDATE deliveries SET due_at_ms = $2, lane = 1 WHERE state = 'pending' AND attempts = 0 AND lane = 0 AND id = $1
     AND hook_id = (SELECT c.hook_id FROM delivery_contents c WHERE c.delivery_id = $1)
   RETURNING id, hook_id`,
);

const wakeEndpoint: Statement = statement(
  'endpoint_wake',
  `UPDATE endpoint_queue SET version = version + 1,
     next_at_ms = CASE WHEN parked = 1 OR next_at_ms < $2 THEN next_at_ms ELSE $2 END
   WHERE hook_id = $1`,
);

/** Takes the delivery of a test, which was enqueued for later; its hook, unless it was taken already. */
export async function takeTest(store: Store, id: number, untilMs: number): Promise<number | undefined> {
  const [row] = await store.write(take, [id, untilMs]);
  return row?.hook_id;
}

/** `absent`: there is no such delivery, or its hook was deleted. `asked`: an earlier request for it is under way. */
export type Restarted = 'restarted' | 'absent' | 'asked';

export interface Taking {
  readonly nowMs: number;
  /** The workers do not send it before then. */
  readonly untilMs: number;
}

type Place = readonly [hookId: number, id: number];

/** Restarts a schedule and takes its first attempt. */
export async function takeAgain(store: Store, place: Place, { nowMs, untilMs }: Taking): Promise<Restarted> {
  const [rows] = await store.writeAll([
    { statement: restartTaken, parameters: [...place, untilMs, nowMs] },
    { statement: wakeEndpoint, parameters: [place[0], untilMs] },
  ]);
  return await nameOutcome(store, place, rows);
}

const giveBackTaken: Statement<Row> = statement(
  'delivery_give_back',
  `UPDATE deliveries SET due_at_ms = $3 WHERE hook_id = $1 AND id = $2 AND ${isTaken('$3')}`,
);

/** A taken delivery is not attempted after all: the workers may send it. */
export async function giveBack(store: Store, place: Place, nowMs: number): Promise<void> {
  await store.write(giveBackTaken, [...place, nowMs]);
}

async function nameOutcome(store: Store, place: Place, rows: readonly Row[] = []): Promise<Restarted> {
  if (rows.length > 0) return 'restarted';
  return (await store.read(stillThere, place)).length > 0 ? 'asked' : 'absent';
}

// A person asks, so the pause ends. A held endpoint stays held.
const endPause: Statement<Row> = statement(
  'endpoint_end_pause',
  `UPDATE endpoint_queue SET parked = 0, paused_since_ms = NULL, pause_reason = NULL, next_at_ms = $2,
     version = version + 1
   WHERE hook_id = $1 AND held_since_ms IS NULL AND canceled_at_ms IS NULL`,
);

/** Restarts a schedule and ends the pause of the endpoint; the workers send the delivery in its turn. */
export async function restart(store: Store, place: Place, nowMs: number): Promise<Restarted> {
  const [rows] = await store.writeAll([
    { statement: restartWaiting, parameters: [...place, nowMs] },
    { statement: endPause, parameters: [place[0], nowMs] },
  ]);
  return await nameOutcome(store, place, rows);
}

// The event of a test never happened, so a failed test is not sent again.
const restartSome: Statement<{ id: number }> = statement(
  'delivery_restart_some',
  `UPDATE deliveries SET ${restartIn(0)} WHERE hook_id = $1 AND id IN
     (SELECT f.id FROM deliveries f WHERE f.hook_id = $1 AND f.id > $2 AND f.created_at_ms >= $4
        AND f.state IN ('dead', 'blocked', 'expired')
        AND NOT EXISTS (SELECT 1 FROM delivery_contents c JOIN events e ON e.id = c.event_id
                        WHERE c.delivery_id = f.id AND e.source = 'test')
      ORDER BY f.id LIMIT $5)
   RETURNING id`,
);

const REPLAY_PAGE = 500;

/** Sends deliveries again that failed for good since then, a page at a time; returns how many. */
export async function replay(store: Store, hookId: number, sinceMs: number, nowMs: number): Promise<number> {
  let count = 0;
  for (let afterId = 0; ; ) {
    const [rows = []] = await store.writeAll([
      { statement: restartSome, parameters: [hookId, afterId, nowMs, sinceMs, REPLAY_PAGE] },
      { statement: endPause, parameters: [hookId, nowMs] },
    ]);
    count += rows.length;
    if (rows.length < REPLAY_PAGE) return count;
    afterId = Math.max(...rows.map((row) => row.id as number));
  }
}

const recoverEndpoint: Statement = statement(
  'endpoint_recover',
  `UPDATE endpoint_queue SET fails = 0, failing_since_ms = NULL, version = version + 1, openings = 0, paused_since_ms = NULL,
     pause_reason = CASE WHEN parked = 1 AND pause_reason = 'no_connection' THEN '${RECONNECTED}' ELSE NULL END,
     next_at_ms = CASE WHEN parked = 1 THEN $2 ELSE next_at_ms END, parked = 0
   WHERE hook_id = $1 AND held_since_ms IS NULL AND canceled_at_ms IS NULL`,
);

/** The endpoint accepted a manual attempt: its pause ends. */
export function recoverEndpointStep(hookId: number, nowMs: number): Step {
  return { statement: recoverEndpoint, parameters: [hookId, nowMs] };
}

const countFailure: Statement = statement(
  'endpoint_count_failure',
  `UPDATE endpoint_queue SET fails = fails + 1,
     failing_since_ms = CASE WHEN failing_since_ms IS NULL THEN $2 ELSE failing_since_ms END
   WHERE hook_id = $1`,
);

/** A manual attempt failed, which counts like any other failure. */
export function countFailureStep(hookId: number, nowMs: number): Step {
  return { statement: countFailure, parameters: [hookId, nowMs] };
}

const waitsForOrigin = `origin = $1 AND parked = 1 AND pause_reason = 'no_connection'
  AND held_since_ms IS NULL AND canceled_at_ms IS NULL`;
const waitingForOrigin = statement<{ hook_id: number }>(
  'endpoints_waiting_for_origin',
  `SELECT hook_id FROM endpoint_queue WHERE ${waitsForOrigin} ORDER BY hook_id`,
);
const wakeOfOrigin: Statement = statement(
  'endpoint_wake_of_origin',
  `UPDATE endpoint_queue SET parked = 0, next_at_ms = $3, version = version + 1 WHERE hook_id = $2 AND ${waitsForOrigin}`,
);

const WAKE_PAGE = 64;

/**
 * The origin can be connected to again: endpoints that were paused only for that are due. Row by row, because one statement over all of
 * an origin locks them in whatever order it finds them.
 */
export async function wakeOrigin(store: Store, origin: string, nowMs: number): Promise<void> {
  const rows = await store.read(waitingForOrigin, [origin]);
  const steps = rows.map(({ hook_id }) => ({ statement: wakeOfOrigin, parameters: [origin, hook_id, nowMs] }));
  for (let at = 0; at < steps.length; at += WAKE_PAGE) await store.writeAll(steps.slice(at, at + WAKE_PAGE));
}

const doubtDeliveries = wideStatement<{ hook_id: number }>(
  'delivery_doubt',
  (width) =>
    `UPDATE deliveries SET state = 'pending', lane = 1, due_at_ms = $${width + 1}
     FROM (VALUES ${renderValueRows(['int'], width)}) AS v
     JOIN delivery_contents c ON c.delivery_id = v.column1
     WHERE deliveries.hook_id = c.hook_id AND deliveries.id = v.column1 AND deliveries.state = 'succeeded'
     RETURNING deliveries.hook_id`,
);

/** Deliveries whose answers may have belonged to other requests are sent again; returns how many. */
export async function reopenUnverified(store: Store, deliveryIds: readonly number[], nowMs: number): Promise<number> {
  const steps = wideSteps(
    doubtDeliveries,
    deliveryIds.map((id) => [id]),
    [nowMs],
  );
  const rows = (await store.writeAll(steps)).flat() as unknown as { hook_id: number }[];
  const hookIds = [...new Set(rows.map((row) => row.hook_id))].sort((a, b) => a - b);
  if (hookIds.length > 0)
    await store.writeAll(hookIds.map((hookId) => ({ statement: wakeEndpoint, parameters: [hookId, nowMs] })));
  return rows.length;
}
