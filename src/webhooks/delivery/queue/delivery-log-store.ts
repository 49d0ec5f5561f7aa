/** Lists and finds deliveries and their attempts in the log. */
import { type Statement, type Store, statement } from '../../../database/store.ts';
import type { EventKind } from '../../events/event-kind.ts';
import { cutToPeriod, findRowBehind, type LogRange, listNewestFirst, type Period } from '../log/log-windows-store.ts';
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
  /** The subject of its event; null for a delivery that an older version stored. */
  readonly subject: string | null;
}

/** A delivery in a list, with its last attempt. */
export interface ListedDelivery extends LoggedDelivery {
  readonly reason: string | null;
  /** The JSON of the record of the last attempt; null before the first. */
  readonly detail: string | null;
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
  d.attempted_at_ms, c.event_id, c.uuid, c.subject`;

// '' means any value: a parameter that is null has no type on PostgreSQL.
// The page is selected first, so that the last attempt is looked up for its few rows only.
const withLastAttempt = (page: string) =>
  `SELECT p.*, a.reason, a.detail FROM (${page}) AS p
   LEFT JOIN delivery_attempts a ON a.delivery_id = p.id
     AND a.id = (SELECT MAX(l.id) FROM delivery_attempts l WHERE l.delivery_id = p.id)
   ORDER BY p.id DESC`;

const MATCHES = `FROM deliveries d JOIN delivery_contents c ON c.delivery_id = d.id
   WHERE d.hook_id = $1 AND d.id >= $2 AND d.id < $3 AND ($4 = '' OR d.state = $4) AND ($5 = '' OR d.event_kind = $5)
     AND d.created_at_ms >= $6 AND d.created_at_ms < $7 AND d.status >= $8 AND d.status <= $9 AND d.attempts >= $12
     AND ($10 = '' OR c.uuid = $10) AND ($11 = '' OR c.subject = $11)`;

const listDeliveriesOfHookSql: Statement<ListedDelivery> = statement(
  'delivery-log-list',
  withLastAttempt(`SELECT ${COLUMNS} ${MATCHES} ORDER BY d.id DESC LIMIT $13 OFFSET $14`),
);

const countMatchesSql: Statement<{ count: number }> = statement(
  'delivery-log-count',
  `SELECT COUNT(*) AS count ${MATCHES}`,
);

const findDeliveryOfHookSql: Statement<LoggedDelivery & { body: Uint8Array }> = statement(
  'delivery-log-find',
  `SELECT ${COLUMNS}, c.body FROM deliveries d JOIN delivery_contents c ON c.delivery_id = d.id
   WHERE d.hook_id = $1 AND d.id = $2`,
);

const listAttemptsSql: Statement<LoggedAttempt> = statement(
  'delivery-log-attempts',
  `SELECT attempt, started_at_ms, outcome, status, reason, remote_address, detail, response_body
   FROM delivery_attempts WHERE delivery_id = $1 ORDER BY id`,
);

export interface LogFilter extends Period {
  readonly hookId: number;
  readonly state?: StoredState | undefined;
  readonly eventKind?: EventKind | undefined;
  /** The status of the last attempt; 0 if it had no response. A delivery without an attempt does not match. */
  readonly status?: { readonly from: number; readonly to: number } | undefined;
  readonly uuid?: string | undefined;
  readonly subject?: string | undefined;
  /** Only deliveries with smaller ids: the last id of the previous page. */
  readonly beforeId: number;
  /** Only deliveries with this id or a larger one. */
  readonly fromId?: number | undefined;
  readonly limit: number;
  /** How many rows to skip (offset). */
  readonly offset?: number;
}

export async function listDeliveries(store: Store, filter: LogFilter): Promise<ListedDelivery[]> {
  const { hookId, beforeId, fromId = 0, limit, offset = 0 } = filter;
  const range = { hookId, fromId, beforeId };
  if (offset === 0 && !isFiltered(filter))
    return await listMatches(store, bindMatches(filter, range), { limit, offset });
  const found: ListedDelivery[] = [];
  let toSkip = offset;
  for await (const window of listNewestFirst(store, await cutToPeriod(store, filter, range))) {
    const matches = bindMatches(filter, window);
    const count = toSkip === 0 ? undefined : await countMatches(store, matches);
    if (count === undefined || count > toSkip) {
      found.push(...(await listMatches(store, matches, { limit: limit - found.length, offset: toSkip })));
      toSkip = 0;
    } else toSkip -= count;
    if (found.length === limit) break;
  }
  return found;
}

/** Whether the log is filtered. Without a filter the rows of a page are contiguous. */
function isFiltered({ state, eventKind, status, uuid, subject, sinceMs, untilMs }: LogFilter): boolean {
  const isOfAnyTime = sinceMs === 0 && untilMs === Number.MAX_SAFE_INTEGER;
  return !isOfAnyTime || [state, eventKind, status, uuid, subject].some((wanted) => wanted !== undefined);
}

function bindMatches(filter: LogFilter, { hookId, fromId, beforeId }: LogRange): readonly (string | number)[] {
  const { state = '', eventKind = '', uuid = '', subject = '', sinceMs, untilMs } = filter;
  const { from, to } = filter.status ?? { from: 0, to: 999 };
  const minAttempts = filter.status === undefined ? 0 : 1;
  return [hookId, fromId, beforeId, state, eventKind, sinceMs, untilMs, from, to, uuid, subject, minAttempts];
}

async function listMatches(
  store: Store,
  matches: readonly (string | number)[],
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<ListedDelivery[]> {
  return await store.read(listDeliveriesOfHookSql, [...matches, limit, offset]);
}

async function countMatches(store: Store, matches: readonly (string | number)[]): Promise<number> {
  const [row] = await store.read(countMatchesSql, matches);
  return row?.count ?? 0;
}

export async function findDelivery(store: Store, hookId: number, id: number) {
  const [delivery] = await store.read(findDeliveryOfHookSql, [hookId, id]);
  if (delivery === undefined) return undefined;
  return { delivery, attempts: await store.read(listAttemptsSql, [id]) };
}

const SEARCHED = 20_000;

/** The smallest id that a search reads in one request; undefined if it reaches the end of the log, or of its period. */
export async function findSearchEnd(store: Store, filter: LogFilter): Promise<number | undefined> {
  const { hookId, beforeId, fromId = 0 } = filter;
  return await findRowBehind(store, await cutToPeriod(store, filter, { hookId, beforeId, fromId }), SEARCHED);
}
