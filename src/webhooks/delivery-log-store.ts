/** The delivery log as its readers see it, and what they may set going again. */
import { type Row, type Statement, type Store, statement } from '../database/store.ts';
import type { StoredState } from './delivery.ts';
import type { EventKind } from './event-kind.ts';

export interface LoggedDelivery {
  readonly id: number;
  readonly hook_id: number;
  readonly event_kind: EventKind;
  readonly state: StoredState;
  readonly attempts: number;
  readonly status: number;
  readonly due_at_ms: number;
  readonly created_at_ms: number;
  readonly attempted_at_ms: number | null;
  readonly event_id: number;
  readonly uuid: string;
}

export interface LoggedAttempt {
  readonly attempt: number;
  readonly started_at_ms: number;
  readonly outcome: string;
  readonly status: number;
  readonly reason: string | null;
  readonly remote_address: string | null;
  readonly detail: string;
  readonly response_body: Uint8Array | null;
}

const COLUMNS = `d.id, d.hook_id, d.event_kind, d.state, d.attempts, d.status, d.due_at_ms, d.created_at_ms,
  d.attempted_at_ms, c.event_id, c.uuid`;

// '' stands for any: a parameter that is null has no type on PostgreSQL.
const listDeliveriesOfHook: Statement<LoggedDelivery> = statement(
  'delivery_log_list',
  `SELECT ${COLUMNS} FROM deliveries d JOIN delivery_contents c ON c.delivery_id = d.id
   WHERE d.hook_id = $1 AND d.id < $2 AND ($3 = '' OR d.state = $3) AND ($4 = '' OR d.event_kind = $4)
     AND d.created_at_ms >= $5 AND d.created_at_ms < $6
   ORDER BY d.id DESC LIMIT $7`,
);

const findDeliveryOfHook: Statement<LoggedDelivery & { body: Uint8Array }> = statement(
  'delivery_log_find',
  `SELECT ${COLUMNS}, c.body FROM deliveries d JOIN delivery_contents c ON c.delivery_id = d.id
   WHERE d.hook_id = $1 AND d.id = $2`,
);

const listAttempts: Statement<LoggedAttempt> = statement(
  'delivery_log_attempts',
  `SELECT attempt, started_at_ms, outcome, status, reason, remote_address, detail, response_body
   FROM delivery_attempts WHERE delivery_id = $1 ORDER BY id`,
);

const findHeldSince: Statement<{ held_since_ms: number | null }> = statement(
  'delivery_log_held',
  'SELECT held_since_ms FROM endpoint_queue WHERE hook_id = $1',
);

export interface LogFilter {
  readonly hookId: number;
  readonly state: StoredState | undefined;
  readonly eventKind: EventKind | undefined;
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Only what has a smaller id: where the page before ended. */
  readonly beforeId: number;
  readonly limit: number;
}

export async function listDeliveries(store: Store, filter: LogFilter): Promise<LoggedDelivery[]> {
  const { hookId, beforeId, state = '', eventKind = '', sinceMs, untilMs, limit } = filter;
  return await store.read(listDeliveriesOfHook, [hookId, beforeId, state, eventKind, sinceMs, untilMs, limit]);
}

export async function findDelivery(store: Store, hookId: number, id: number) {
  const [delivery] = await store.read(findDeliveryOfHook, [hookId, id]);
  if (delivery === undefined) return undefined;
  return { delivery, attempts: await store.read(listAttempts, [id]) };
}

/** Whether what is pending of this hook is held. */
export async function isHeld(store: Store, hookId: number): Promise<boolean> {
  const [row] = await store.read(findHeldSince, [hookId]);
  return row !== undefined && row.held_since_ms !== null;
}

// A new schedule begins: its attempts are counted from here. What waits for a retry only waits no longer.
const RESTART = `state = 'pending', lane = 0, due_at_ms = $3,
  schedule_from = CASE WHEN state = 'pending' THEN schedule_from ELSE attempts END`;

const restart: Statement<{ id: number }> = statement(
  'delivery_restart',
  `UPDATE deliveries SET ${RESTART} WHERE hook_id = $1 AND id = $2 AND state <> 'canceled' RETURNING id`,
);

const restartSome: Statement<{ id: number }> = statement(
  'delivery_restart_some',
  `UPDATE deliveries SET ${RESTART} WHERE hook_id = $1 AND id IN
     (SELECT f.id FROM deliveries f WHERE f.hook_id = $1 AND f.id > $2 AND f.created_at_ms >= $4
        AND f.state IN ('dead', 'blocked', 'expired') ORDER BY f.id LIMIT $5)
   RETURNING id`,
);

// A person asks: what waits out a failure waits no longer. What is held stays so.
const hurryEndpoint: Statement<Row> = statement(
  'endpoint_hurry',
  `UPDATE endpoint_queue SET parked = 0, next_at_ms = $2, version = version + 1
   WHERE hook_id = $1 AND held_since_ms IS NULL AND canceled_at_ms IS NULL`,
);

/** False when there is no such delivery, or its hook was deleted. */
export async function redeliver(store: Store, hookId: number, id: number, nowMs: number): Promise<boolean> {
  const [rows] = await store.writeAll([
    { statement: restart, parameters: [hookId, id, nowMs] },
    { statement: hurryEndpoint, parameters: [hookId, nowMs] },
  ]);
  return (rows ?? []).length > 0;
}

const REPLAY_PAGE = 500;

/** Sends again what failed for good since then, a page at a time; returns how many. */
export async function replay(store: Store, hookId: number, sinceMs: number, nowMs: number): Promise<number> {
  let count = 0;
  for (let afterId = 0; ; ) {
    const [rows = []] = await store.writeAll([
      { statement: restartSome, parameters: [hookId, afterId, nowMs, sinceMs, REPLAY_PAGE] },
      { statement: hurryEndpoint, parameters: [hookId, nowMs] },
    ]);
    count += rows.length;
    if (rows.length < REPLAY_PAGE) return count;
    afterId = Math.max(...rows.map((row) => row.id as number));
  }
}
