/** Counts webhooks with problems and waiting deliveries, for the overview. */
import { type Row, type SqlValue, type Statement, type Store, statement } from '../../database/store.ts';
import type { PauseReason } from '../delivery/schedule/pause-reason.ts';
import { BY_OWNER } from './troubled-hooks-store.ts';

/** Waiting deliveries are counted up to this limit, so that a page does not cost more when a million wait. */
export const BACKLOG_LIMIT = 10_000;
const LISTED_HOOKS = 20;
/** The oldest retry is searched among the next 20 of a hook; for more, PostgreSQL would read the log instead of the index. */
const LOOKED_RETRIES = 20;

interface CountsRow extends Row {
  readonly repositories: number;
  readonly hooks: number;
  readonly disabled: number;
  readonly switched_off: number;
  readonly failing: number;
  readonly paused: number;
}

/*
 * Each query has a statement for all owners and one for a single owner. The former reads indexes of webhooks with problems or of waiting
 * deliveries, the latter goes from the owner's repositories to their webhooks. So the cost does not depend on webhooks without problems.
 */

const countHooksOfAllSql: Statement<CountsRow> = statement(
  'overview-count-hooks',
  `SELECT (SELECT COUNT(*) FROM repositories) AS repositories, (SELECT COUNT(*) FROM hooks) AS hooks,
     (SELECT COUNT(*) FROM hooks WHERE disabled_at_ms IS NOT NULL AND (disabled_reason IS NULL OR disabled_reason <> $2))
       AS disabled,
     (SELECT COUNT(*) FROM hooks WHERE disabled_at_ms IS NOT NULL AND disabled_reason = $2) AS switched_off,
     (SELECT COUNT(*) FROM endpoint_queue q JOIN hooks h ON h.id = q.hook_id
      WHERE q.failing_since_ms IS NOT NULL AND h.disabled_at_ms IS NULL) AS failing,
     (SELECT COUNT(*) FROM endpoint_queue q JOIN hooks h ON h.id = q.hook_id
      WHERE q.parked = 1 AND q.next_at_ms > $1 AND q.paused_since_ms IS NOT NULL AND h.disabled_at_ms IS NULL) AS paused`,
);
const countHooksOfOwnerSql: Statement<CountsRow> = statement(
  'overview-count-hooks-of-owner',
  `SELECT COUNT(DISTINCT r.id) AS repositories, COUNT(h.id) AS hooks,
     COUNT(CASE WHEN h.disabled_reason = $2 THEN NULL ELSE h.disabled_at_ms END) AS disabled,
     COUNT(CASE WHEN h.disabled_reason = $2 THEN h.disabled_at_ms END) AS switched_off,
     COUNT(CASE WHEN h.disabled_at_ms IS NULL THEN q.failing_since_ms END) AS failing,
     COUNT(CASE WHEN h.disabled_at_ms IS NULL AND q.parked = 1 AND q.next_at_ms > $1 THEN q.paused_since_ms END) AS paused
   FROM repositories r LEFT JOIN hooks h ON h.repository_id = r.id LEFT JOIN endpoint_queue q ON q.hook_id = h.id
   WHERE r.owner_id = $3`,
);

interface TroubledRow extends Row {
  readonly id: number;
  readonly url: string;
  readonly owner_login: string;
  readonly path: string;
  readonly disabled_at_ms: number | null;
  readonly disabled_reason: string | null;
  readonly failing_since_ms: number | null;
  readonly fails: number | null;
  readonly paused_until_ms: number | null;
  readonly pause_reason: PauseReason | null;
  readonly result: string | null;
  readonly result_code: number;
}

const TROUBLED_COLUMNS = `h.id, h.url, r.owner_login, r.path, h.disabled_at_ms, h.disabled_reason, q.failing_since_ms, q.fails,
     CASE WHEN q.parked = 1 AND q.next_at_ms > $1 AND q.held_since_ms IS NULL THEN q.next_at_ms END AS paused_until_ms,
     q.pause_reason, h.result, h.result_code`;
const WITHOUT_SWITCHED_OFF = '(h.disabled_reason IS NULL OR h.disabled_reason <> $2)';
const IN_ORDER = `ORDER BY CASE WHEN h.disabled_at_ms IS NULL THEN 0 ELSE 1 END,
     COALESCE(h.disabled_at_ms, q.failing_since_ms) DESC, h.id LIMIT ${LISTED_HOOKS}`;

const listTroubledOfAllSql: Statement<TroubledRow> = statement(
  'overview-troubled-hooks',
  `SELECT ${TROUBLED_COLUMNS}
   FROM (SELECT id FROM hooks WHERE disabled_at_ms IS NOT NULL
         UNION SELECT hook_id FROM endpoint_queue WHERE failing_since_ms IS NOT NULL) AS t
     JOIN hooks h ON h.id = t.id JOIN repositories r ON r.id = h.repository_id LEFT JOIN endpoint_queue q ON q.hook_id = h.id
   WHERE ${WITHOUT_SWITCHED_OFF} ${IN_ORDER}`,
);
const listTroubledOfOwnerSql: Statement<TroubledRow> = statement(
  'overview-troubled-hooks-of-owner',
  `SELECT ${TROUBLED_COLUMNS}
   FROM repositories r JOIN hooks h ON h.repository_id = r.id LEFT JOIN endpoint_queue q ON q.hook_id = h.id
   WHERE r.owner_id = $3 AND (h.disabled_at_ms IS NOT NULL OR q.failing_since_ms IS NOT NULL)
     AND ${WITHOUT_SWITCHED_OFF} ${IN_ORDER}`,
);

// Goes from one hook with waiting deliveries to the next, until enough are counted: those of a deleted hook, perhaps a million, are
// skipped in one step. Uses no join, which a planner could turn into a scan of the whole log.
const countBacklogOfAllSql: Statement<{ count: number }> = statement(
  'overview-backlog-of-all',
  `WITH RECURSIVE busy (hook_id, total) AS (
     SELECT MIN(hook_id), CAST(0 AS BIGINT) FROM deliveries WHERE state = 'pending'
     UNION ALL
     SELECT (SELECT MIN(d.hook_id) FROM deliveries d WHERE d.state = 'pending' AND d.hook_id > b.hook_id),
       b.total + CASE WHEN (SELECT q.canceled_at_ms FROM endpoint_queue q WHERE q.hook_id = b.hook_id) IS NULL
         THEN (SELECT COUNT(*) FROM (
           SELECT 1 FROM deliveries d WHERE d.state = 'pending' AND d.hook_id = b.hook_id LIMIT $1) AS own)
         ELSE 0 END
     FROM busy b WHERE b.hook_id IS NOT NULL AND b.total < $1)
   SELECT MAX(total) AS count FROM busy`,
);
const countBacklogOfOwnerSql: Statement<{ count: number }> = statement(
  'overview-backlog-of-owner',
  `SELECT COUNT(*) AS count FROM (
     SELECT 1 FROM repositories r JOIN hooks h ON h.repository_id = r.id
       JOIN endpoint_queue q ON q.hook_id = h.id AND q.canceled_at_ms IS NULL
       JOIN deliveries d ON d.hook_id = q.hook_id AND d.state = 'pending'
     WHERE r.owner_id = $2 LIMIT $1) AS waiting`,
);

interface OldestRow extends Row {
  readonly hook_id: number;
  readonly owner_login: string;
  readonly path: string;
  readonly created_at_ms: number;
}

// Needs few index entries of each hook: the index of waiting deliveries has first attempts in the order of their creation. Retries are
// not in that order, but their ids, which the index has too, rise with time.
const selectOldest = (hooks: string) =>
  `SELECT hook_id, owner_login, path, created_at_ms FROM (
     SELECT q.hook_id, r.owner_login, r.path,
       (SELECT MIN(c.created_at_ms) FROM (
          SELECT * FROM (SELECT d.created_at_ms FROM deliveries d
            WHERE d.hook_id = q.hook_id AND d.state = 'pending' AND d.lane = 0 ORDER BY d.due_at_ms, d.id LIMIT 1) AS first
          UNION ALL
          SELECT d.created_at_ms FROM deliveries d WHERE d.hook_id = q.hook_id AND d.id = (
            SELECT MIN(l.id) FROM (
              SELECT w.id FROM deliveries w WHERE w.hook_id = q.hook_id AND w.state = 'pending' AND w.lane = 1
              ORDER BY w.due_at_ms, w.id LIMIT ${LOOKED_RETRIES}) AS l)) AS c) AS created_at_ms
     FROM ${hooks} AND q.held_since_ms IS NULL) AS endpoints
   WHERE created_at_ms IS NOT NULL ORDER BY created_at_ms, hook_id LIMIT 1`;

// Goes from one hook with waiting deliveries to the next, by the index of waiting deliveries.
const oldestWaitingOfAllSql: Statement<OldestRow> = statement(
  'overview-oldest-waiting',
  `WITH RECURSIVE busy (hook_id) AS (
     SELECT MIN(hook_id) FROM deliveries WHERE state = 'pending'
     UNION ALL
     SELECT (SELECT MIN(d.hook_id) FROM deliveries d WHERE d.state = 'pending' AND d.hook_id > b.hook_id)
     FROM busy b WHERE b.hook_id IS NOT NULL)
   ${selectOldest(
     `busy b JOIN endpoint_queue q ON q.hook_id = b.hook_id JOIN hooks h ON h.id = q.hook_id
       JOIN repositories r ON r.id = h.repository_id WHERE TRUE`,
   )}`,
);
const oldestWaitingOfOwnerSql: Statement<OldestRow> = statement(
  'overview-oldest-waiting-of-owner',
  selectOldest(
    `repositories r JOIN hooks h ON h.repository_id = r.id JOIN endpoint_queue q ON q.hook_id = h.id
     WHERE r.owner_id = $1`,
  ),
);

/** Ids of owners; `all` for administrators of the service. */
export type OwnerScope = readonly string[] | 'all';

export interface HookTotals {
  readonly repositories: number;
  readonly hooks: number;
  /** Hooks that the service disabled because of failures. */
  readonly disabled: number;
  /** Hooks that their owners switched off. */
  readonly switchedOff: number;
  /** Enabled hooks without an accepted attempt since the first failure. */
  readonly failing: number;
  readonly paused: number;
}

export async function countHooksInScope(store: Store, scope: OwnerScope, nowMs: number): Promise<HookTotals> {
  const values = [nowMs, BY_OWNER];
  const rows = await readScope(store, scope, { ofAll: countHooksOfAllSql, ofOwner: countHooksOfOwnerSql, values });
  const sum = (name: 'repositories' | 'hooks' | 'disabled' | 'switched_off' | 'failing' | 'paused') =>
    rows.reduce((total, row) => total + row[name], 0);
  return {
    repositories: sum('repositories'),
    hooks: sum('hooks'),
    disabled: sum('disabled'),
    switchedOff: sum('switched_off'),
    failing: sum('failing'),
    paused: sum('paused'),
  };
}

export interface TroubledHook {
  readonly id: number;
  readonly url: string;
  readonly repository: { readonly ownerLogin: string; readonly path: string };
  readonly disabledAtMs: number | null;
  readonly disabledReason: string | null;
  readonly failingSinceMs: number | null;
  readonly fails: number;
  readonly pausedUntilMs: number | null;
  readonly pauseReason: PauseReason | null;
  readonly result: string | null;
  readonly resultCode: number;
}

/** Hooks with problems, failing ones first, then by the newest problem; as many as a page shows. Leaves out those switched off. */
export async function listTroubledHooks(store: Store, scope: OwnerScope, nowMs: number): Promise<TroubledHook[]> {
  const values = [nowMs, BY_OWNER];
  const rows = await readScope(store, scope, { ofAll: listTroubledOfAllSql, ofOwner: listTroubledOfOwnerSql, values });
  return rows
    .toSorted(compareTroubled)
    .slice(0, LISTED_HOOKS)
    .map((row) => ({
      id: row.id,
      url: row.url,
      repository: { ownerLogin: row.owner_login, path: row.path },
      disabledAtMs: row.disabled_at_ms,
      disabledReason: row.disabled_reason,
      failingSinceMs: row.failing_since_ms,
      fails: row.fails ?? 0,
      pausedUntilMs: row.paused_until_ms,
      pauseReason: row.pause_reason,
      result: row.result,
      resultCode: row.result_code,
    }));
}

/** Sorts rows of several owners in the order of the statement. */
function compareTroubled(one: TroubledRow, other: TroubledRow): number {
  const orderOf = (row: TroubledRow) => (row.disabled_at_ms === null ? 0 : 1);
  const timeOf = (row: TroubledRow) => row.disabled_at_ms ?? row.failing_since_ms ?? 0;
  return orderOf(one) - orderOf(other) || timeOf(other) - timeOf(one) || one.id - other.id;
}

/** Counts waiting deliveries, including held ones, except those of deleted webhooks; `BACKLOG_LIMIT` means at least this many. */
export async function countBacklog(store: Store, scope: OwnerScope): Promise<number> {
  const values = [BACKLOG_LIMIT];
  const rows = await readScope(store, scope, { ofAll: countBacklogOfAllSql, ofOwner: countBacklogOfOwnerSql, values });
  return Math.min(
    BACKLOG_LIMIT,
    rows.reduce((total, { count }) => total + count, 0),
  );
}

export interface OldestDelivery {
  readonly hookId: number;
  readonly repository: { readonly ownerLogin: string; readonly path: string };
  readonly createdAtMs: number;
}

/** The delivery that has waited longest, except held ones; undefined if nothing waits. */
export async function findOldestWaiting(store: Store, scope: OwnerScope): Promise<OldestDelivery | undefined> {
  const rows = await readScope(store, scope, {
    ofAll: oldestWaitingOfAllSql,
    ofOwner: oldestWaitingOfOwnerSql,
    values: [],
  });
  const [first] = rows.toSorted((one, other) => one.created_at_ms - other.created_at_ms);
  if (first === undefined) return undefined;
  const { hook_id: hookId, owner_login: ownerLogin, path, created_at_ms: createdAtMs } = first;
  return { hookId, repository: { ownerLogin, path }, createdAtMs };
}

interface ScopedRead<R extends Row> {
  readonly ofAll: Statement<R>;
  /** Its last parameter is the id of the owner. */
  readonly ofOwner: Statement<R>;
  readonly values: readonly SqlValue[];
}

async function readScope<R extends Row>(
  store: Store,
  scope: OwnerScope,
  { ofAll, ofOwner, values }: ScopedRead<R>,
): Promise<R[]> {
  if (scope === 'all') return await store.read(ofAll, values);
  return (await Promise.all(scope.map((ownerId) => store.read(ofOwner, [...values, ownerId])))).flat();
}
