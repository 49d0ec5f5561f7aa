/** Reads the delivery log. */
import { type Statement, type Store, statement } from '../../../database/store.ts';
import type { EventKind } from '../../events/event-kind.ts';
import type { StoredState } from '../schedule/delivery.ts';

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
     AND d.created_at_ms >= $5 AND d.created_at_ms < $6 AND d.status >= $7 AND d.status <= $8
     AND ($9 = '' OR c.uuid = $9)
   ORDER BY d.id DESC LIMIT $10 OFFSET $11`,
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

export interface LogFilter {
  readonly hookId: number;
  readonly state?: StoredState | undefined;
  readonly eventKind?: EventKind | undefined;
  /** Of the last attempt. */
  readonly status?: { readonly from: number; readonly to: number } | undefined;
  readonly uuid?: string | undefined;
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Only smaller ids: where the page before ended. */
  readonly beforeId: number;
  readonly limit: number;
  /** How many of the first are left out. */
  readonly offset?: number;
}

export async function listDeliveries(store: Store, filter: LogFilter): Promise<LoggedDelivery[]> {
  const { hookId, beforeId, state = '', eventKind = '', uuid = '', sinceMs, untilMs, limit, offset = 0 } = filter;
  const { from, to } = filter.status ?? { from: 0, to: 999 };
  const where = [hookId, beforeId, state, eventKind, sinceMs, untilMs, from, to, uuid];
  return await store.read(listDeliveriesOfHook, [...where, limit, offset]);
}

export async function findDelivery(store: Store, hookId: number, id: number) {
  const [delivery] = await store.read(findDeliveryOfHook, [hookId, id]);
  if (delivery === undefined) return undefined;
  return { delivery, attempts: await store.read(listAttempts, [id]) };
}
