/**
 * Stores how attempts changed hooks and their queues: pause, breaker, health, disabled. Every statement names its rows and may
 * run twice, so a transaction that failed is repeated unchanged.
 */
import { type BoundStatement, type Statement, statement } from '../../../database/store.ts';
import { bindRows, type MultiRowStatement, multiRowStatement, type ValueRow } from '../../../database/value-rows.ts';
import type { HookHealth } from '../schedule/disable-failing-hook.ts';
import type { Pause } from '../schedule/pause-reason.ts';
import { countFailureStatement, type FailedAttempt, recoverHookQueueStatement } from './delivery-restart-store.ts';
import {
  cancelHookQueueStatement,
  holdHookQueueStatement,
  holdSeenHookQueueStatement,
  isNeitherHeldNorCanceled,
  moveHookQueueStatement,
  NEVER_MS,
} from './delivery-store.ts';

/** The failures of a hook, and whether it is paused. Only the latest change of a hook counts. */
export interface HealthChange extends HookHealth {
  readonly kind: 'health';
  readonly hookId: number;
  /** How often the hook's breaker opened since it was last closed. */
  readonly openings: number;
  /** Null when it may send. */
  readonly pause: Pause | null;
}

export type HookQueueChange =
  | HealthChange
  /** The hook is switched off, and what is pending is held. */
  | { readonly kind: 'disable'; readonly hookId: number; readonly reason: string }
  /** The hook was found switched off, in the version of the row that was read. */
  | { readonly kind: 'hold'; readonly hookId: number; readonly version: number }
  /** The hook was deleted. */
  | { readonly kind: 'cancel'; readonly hookId: number }
  /** The hook's URL has another origin. */
  | { readonly kind: 'move'; readonly hookId: number; readonly origin: string }
  /** The origin can be connected to again: its hook queues need not wait for probes of their own. */
  | { readonly kind: 'wake origin'; readonly origin: string }
  /** A manual attempt was accepted: the hook queue's pause ends. */
  | { readonly kind: 'recover'; readonly hookId: number }
  /** Counts the failure of a manual attempt. */
  | ({ readonly kind: 'count failure' } & FailedAttempt);

type ChangeOf<Kind> = Extract<HookQueueChange, { kind: Kind }>;

/** Changes of a single row. Health is stored for many rows at once, and `wakeOrigin` wakes an origin in statements of its own. */
type RowChange = Exclude<HookQueueChange, { kind: 'health' | 'wake origin' }>;

const STATEMENT_OF: { readonly [K in RowChange['kind']]: (change: ChangeOf<K>, nowMs: number) => BoundStatement } = {
  disable: ({ hookId }, nowMs) => holdHookQueueStatement(hookId, nowMs),
  hold: ({ hookId, version }, nowMs) => holdSeenHookQueueStatement(hookId, version, nowMs),
  cancel: ({ hookId }, nowMs) => cancelHookQueueStatement(hookId, nowMs),
  move: ({ hookId, origin }) => moveHookQueueStatement(hookId, origin),
  recover: ({ hookId }, nowMs) => recoverHookQueueStatement(hookId, nowMs),
  'count failure': countFailureStatement,
};

/** One row of `endpoint_queue` that a transaction changes. */
type RowWork =
  | { readonly kind: 'change'; readonly hookId: number; readonly statement: BoundStatement }
  | { readonly kind: 'health'; readonly hookId: number; readonly row: RowOf<typeof changeHealthSql> }
  | { readonly kind: 'sleep'; readonly hookId: number; readonly row: Sleep };

type RowOf<Wide> = Wide extends MultiRowStatement<infer Types> ? ValueRow<Types> : never;

/**
 * All that a transaction changes in `endpoint_queue`, in ascending order of hooks: two transactions that lock the same rows
 * in different orders would deadlock. Of one hook: its changes in their order, its latest health, its sleep.
 */
export function hookQueueStatements(
  changes: readonly HookQueueChange[],
  sleeps: readonly Sleep[],
  nowMs: number,
): BoundStatement[] {
  const ascending = [...listRowChanges(changes, nowMs), ...listHealth(changes), ...listSleepRows(sleeps)].sort(
    (one, other) => one.hookId - other.hookId,
  );
  return splitRuns(ascending).flatMap(runStatements);
}

function listRowChanges(changes: readonly HookQueueChange[], nowMs: number): RowWork[] {
  const ofRows = changes.filter((change) => change.kind !== 'health' && change.kind !== 'wake origin');
  return ofRows.map((change) => ({
    kind: 'change',
    hookId: change.hookId,
    statement: (STATEMENT_OF[change.kind] as (one: RowChange, at: number) => BoundStatement)(change, nowMs),
  }));
}

/** Neighbours of one kind go into one statement. */
function splitRuns(works: readonly RowWork[]): RowWork[][] {
  const runs: RowWork[][] = [];
  for (const work of works) {
    const run = runs.at(-1);
    if (run?.[0]?.kind === work.kind) run.push(work);
    else runs.push([work]);
  }
  return runs;
}

function runStatements(run: readonly RowWork[]): BoundStatement[] {
  if (run[0]?.kind === 'health')
    return bindRows(
      changeHealthSql,
      run.flatMap((work) => (work.kind === 'health' ? [work.row] : [])),
    );
  if (run[0]?.kind === 'sleep')
    return bindRows(
      sleepSql,
      run.flatMap((work) => (work.kind === 'sleep' ? [work.row] : [])),
    );
  return run.flatMap((work) => (work.kind === 'change' ? [work.statement] : []));
}

const changeHealthSql = multiRowStatement(
  'endpoint-change',
  {
    hookId: 'int',
    fails: 'int',
    failingSinceMs: 'int',
    pausedUntilMs: 'int',
    pausedSinceMs: 'int',
    pauseReason: 'text',
    openings: 'int',
  },
  ({ values, v }) =>
    `UPDATE endpoint_queue SET fails = ${v.fails}, failing_since_ms = ${v.failingSinceMs},
       parked = CASE WHEN ${v.pausedUntilMs} IS NULL THEN 0 ELSE 1 END,
       next_at_ms = COALESCE(${v.pausedUntilMs}, endpoint_queue.next_at_ms),
       paused_since_ms = ${v.pausedSinceMs}, pause_reason = ${v.pauseReason}, openings = ${v.openings}
     FROM ${values} WHERE endpoint_queue.hook_id = ${v.hookId} AND ${isNeitherHeldNorCanceled}`,
);

function listHealth(changes: readonly HookQueueChange[]): RowWork[] {
  const latest = new Map<number, HealthChange>();
  for (const change of changes) if (change.kind === 'health') latest.set(change.hookId, change);
  return [...latest.values()].map(({ hookId, fails, failingSinceMs, openings, pause }) => ({
    kind: 'health',
    hookId,
    row: {
      hookId,
      fails,
      failingSinceMs,
      pausedUntilMs: pause?.untilMs ?? null,
      pausedSinceMs: pause?.sinceMs ?? null,
      pauseReason: pause?.reason ?? null,
      openings,
    },
  }));
}

/** A hook queue without anything due: it sleeps until its next retry, or until something is enqueued. */
export interface Sleep {
  readonly hookId: number;
  /** The version that the worker read. If an enqueue has raised it, the hook queue stays awake. */
  readonly version: number;
}

const headDue = (lane: number) =>
  `COALESCE((SELECT d.due_at_ms FROM deliveries d WHERE d.state = 'pending' AND d.hook_id = endpoint_queue.hook_id
     AND d.lane = ${lane} ORDER BY d.due_at_ms, d.id LIMIT 1), ${NEVER_MS})`;

const sleepSql = multiRowStatement(
  'endpoint-rest',
  { hookId: 'int', version: 'int' },
  ({ values, v }) =>
    `UPDATE endpoint_queue SET parked = 0, paused_since_ms = NULL, pause_reason = NULL,
       next_at_ms = CASE WHEN ${headDue(0)} < ${headDue(1)} THEN ${headDue(0)} ELSE ${headDue(1)} END
     FROM ${values}
     WHERE endpoint_queue.hook_id = ${v.hookId} AND endpoint_queue.version = ${v.version}
       AND ${isNeitherHeldNorCanceled}
     RETURNING endpoint_queue.hook_id`,
);

/** After the attempt results of the same transaction. */
function listSleepRows(sleeps: readonly Sleep[]): RowWork[] {
  return sleeps.map((sleep) => ({ kind: 'sleep', hookId: sleep.hookId, row: sleep }));
}

const disableHookSql: Statement = statement(
  'hook-disable-failing',
  `UPDATE hooks SET disabled_at_ms = $2, disabled_reason = $3, updated_at_ms = $2 WHERE id = $1 AND disabled_at_ms IS NULL`,
);

/** Rows of `hooks`: after all of `endpoint_queue`, ascending too. */
export function hookStatements(
  changes: readonly HookQueueChange[],
  responses: readonly LastResponse[],
  nowMs: number,
): BoundStatement[] {
  const disabled = changes.filter((change) => change.kind === 'disable');
  const disabling = disabled.map(({ hookId, reason }) => ({
    hookId,
    statements: [{ statement: disableHookSql, parameters: [hookId, nowMs, reason] }],
  }));
  if (disabling.length === 0) return lastResponseStatements(responses);
  const answered = responses.map((response) => ({
    hookId: response.hookId,
    statements: lastResponseStatements([response]),
  }));
  return [...disabling, ...answered]
    .sort((one, other) => one.hookId - other.hookId)
    .flatMap(({ statements }) => statements);
}

/** The last response of a hook's receiver, or why it is missing; shown as `result` and `result_code`. */
export interface LastResponse {
  readonly hookId: number;
  readonly result: string;
  readonly status: number;
}

const writeResponsesSql = multiRowStatement(
  'hook-write-result',
  { hookId: 'int', result: 'text', status: 'int' },
  ({ values, v }) =>
    `UPDATE hooks SET result = ${v.result}, result_code = ${v.status} FROM ${values} WHERE hooks.id = ${v.hookId}`,
);

/** One row for each hook. */
function lastResponseStatements(responses: readonly LastResponse[]): BoundStatement[] {
  const ascending = [...responses].sort((one, other) => one.hookId - other.hookId);
  return bindRows(writeResponsesSql, ascending);
}
