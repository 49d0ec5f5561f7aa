/**
 * Stores how attempts changed hook queues: pause, breaker, failures, held after a failure. Every statement is idempotent, so a failed
 * transaction is repeated unchanged. A decision of a worker counts only under the lease under which it read the hook queue.
 */
import { type BoundStatement, type Statement, statement } from '../../../database/store.ts';
import { bindRows, type MultiRowStatement, multiRowStatement, type ValueRow } from '../../../database/value-rows.ts';
import type { HookHealth } from '../schedule/disable-failing-hook.ts';
import type { Pause } from '../schedule/pause-reason.ts';
import { holdsLease } from './attempt-result-store.ts';
import {
  cancelHookQueueStatement,
  holdSeenHookQueueStatement,
  isNeitherHeldNorCanceled,
  NEVER_MS,
  shardOf,
} from './delivery-store.ts';
import {
  countFailureStatement,
  type FailedAttempt,
  holdAfterManualStatement,
  type ManualAttempt,
  recoverHookQueueStatement,
} from './manual-attempt-store.ts';
import type { OwnedShard } from './shard-store.ts';

/** An outcome counts only under the lease of its worker, and in the generation of the hook queue in which the attempt began. */
export interface HealthFence extends OwnedShard {
  readonly generation: number;
}

/** The failures of a hook, and whether it is paused. Only the latest change of a hook counts. */
export interface HealthChange extends HookHealth, HealthFence {
  readonly kind: 'health';
  readonly hookId: number;
  /** How often the hook's breaker opened since it was last closed. */
  readonly openings: number;
  /**
   * Null: no pause. `kept`: the attempt began before the pause, which stays; if a person has ended the pause since, nothing changes.
   */
  readonly pause: Pause | 'kept' | null;
}

export type HookQueueChange =
  | HealthChange
  /** Disables the hook and holds its pending deliveries, if the worker's lease is valid or the manual attempt counts (`under`). */
  | DisableChange
  /** The hook was found disabled; `version` is that of its row when it was read. */
  | { readonly kind: 'hold'; readonly hookId: number; readonly version: number }
  /** The hook was deleted. */
  | { readonly kind: 'cancel'; readonly hookId: number }
  /** The hook's URL has another origin. The shard is that of the former origin. */
  | ({ readonly kind: 'move'; readonly hookId: number; readonly origin: string } & OwnedShard)
  /**
   * The origin can be connected to again, so its hook queues need not wait for their own probes. There is no fence, since this is true
   * under any lease; a worker whose breaker of the origin is open pauses them again.
   */
  | { readonly kind: 'wake origin'; readonly origin: string }
  /** Makes the row due from now on, so that other hook queues of the owner that became due earlier come first. */
  | ({ readonly kind: 'make room'; readonly hookId: number } & OwnedShard)
  /** A manual attempt was accepted: the hook queue's pause ends. */
  | ({ readonly kind: 'recover' } & ManualAttempt)
  /** Counts the failure of a manual attempt. */
  | ({ readonly kind: 'count failure' } & FailedAttempt);

interface DisableChange {
  readonly kind: 'disable';
  readonly hookId: number;
  readonly reason: string;
  readonly under: HealthFence | ManualAttempt;
}

type ChangeOf<Kind> = Extract<HookQueueChange, { kind: Kind }>;

/** Changes of a single row. Health is stored for many rows at once; `worker/origin-wakes.ts` wakes an origin in separate transactions. */
type RowChange = Exclude<HookQueueChange, { kind: 'health' | 'wake origin' }>;

/** The worker that stores the changes, and the present time. */
export interface ChangeContext {
  /** The owner of the shards. */
  readonly workerId: string;
  readonly nowMs: number;
}

// A worker that did not run for a while may store its results after another one has sent, paused or disabled. Its lease has ended, so
// nothing changes: the next owner makes the attempt again, and gets the 410 again. A hook queue that was released or moved meanwhile
// has another generation, so the answer of the former address changes nothing.
const holdFailingSql: Statement = statement(
  'endpoint-hold-failing',
  `UPDATE endpoint_queue SET held_since_ms = $2, parked = 1, next_at_ms = $3, version = version + 1
   WHERE hook_id = $1 AND held_since_ms IS NULL AND canceled_at_ms IS NULL AND ${holdsLease('$4', '$5', '$6')}
     AND endpoint_queue.shard = $7 AND generation = $8`,
);

function holdFailingStatement(
  { hookId, under }: Pick<DisableChange, 'hookId' | 'under'>,
  { workerId, nowMs }: ChangeContext,
): BoundStatement {
  if ('deliveryId' in under) return holdAfterManualStatement(under, nowMs);
  const { shard, epoch, generation } = under;
  const parameters = [hookId, nowMs, NEVER_MS, shard, epoch, workerId, shard, generation];
  return { statement: holdFailingSql, parameters };
}

const moveFoundSql: Statement = statement(
  'endpoint-move-found',
  `UPDATE endpoint_queue SET origin = $2, shard = $3, version = version + 1, generation = generation + 1
   WHERE hook_id = $1 AND ${holdsLease('$4', '$5', '$6')} AND endpoint_queue.shard = $7`,
);

function moveFoundStatement(
  { hookId, origin, shard, epoch }: ChangeOf<'move'>,
  { workerId }: ChangeContext,
): BoundStatement {
  return { statement: moveFoundSql, parameters: [hookId, origin, shardOf(origin), shard, epoch, workerId, shard] };
}

// Scans find rows in the order in which they became due. A later due time stays, such as the end of a pause. The reason says at most
// that a pause of the origin has ended, which this worker has followed; left in the row, it would end a later pause of the origin.
const makeRoomSql: Statement = statement(
  'endpoint-make-room',
  `UPDATE endpoint_queue SET next_at_ms = $2, pause_reason = NULL
   WHERE hook_id = $1 AND parked = 0 AND next_at_ms < $2 AND ${holdsLease('$3', '$4', '$5')} AND endpoint_queue.shard = $6`,
);

const STATEMENT_OF: {
  readonly [K in RowChange['kind']]: (change: ChangeOf<K>, context: ChangeContext) => BoundStatement;
} = {
  disable: holdFailingStatement,
  hold: ({ hookId, version }, { nowMs }) => holdSeenHookQueueStatement(hookId, version, nowMs),
  cancel: ({ hookId }, { nowMs }) => cancelHookQueueStatement(hookId, nowMs),
  move: moveFoundStatement,
  'make room': ({ hookId, shard, epoch }, { workerId, nowMs }) => ({
    statement: makeRoomSql,
    parameters: [hookId, nowMs, shard, epoch, workerId, shard],
  }),
  recover: (change, { nowMs }) => recoverHookQueueStatement(change, nowMs),
  'count failure': (change, { nowMs }) => countFailureStatement(change, nowMs),
};

/** One row of `endpoint_queue` that a transaction changes. */
type RowWork =
  | { readonly kind: 'change'; readonly hookId: number; readonly statement: BoundStatement }
  | { readonly kind: 'health'; readonly hookId: number; readonly row: RowOf<typeof changeHealthSql> }
  | { readonly kind: 'sleep'; readonly hookId: number; readonly row: Sleep };

type RowOf<Wide> = Wide extends MultiRowStatement<infer Types> ? ValueRow<Types> : never;

/**
 * All changes of a transaction in `endpoint_queue`, in ascending order of hooks: two transactions that lock the same rows in different
 * orders would deadlock. The order within a hook: its changes, its latest health, then making room (which needs to know whether it is
 * paused), then its sleep.
 */
export function hookQueueStatements(
  changes: readonly HookQueueChange[],
  sleeps: readonly Sleep[],
  context: ChangeContext,
): BoundStatement[] {
  const { rooms = [], others = [] } = Object.groupBy(changes, ({ kind }) =>
    kind === 'make room' ? 'rooms' : 'others',
  );
  const ascending = [
    ...listRowChanges(others, context),
    ...listHealth(changes),
    ...listRowChanges(rooms, context),
    ...listSleepRows(sleeps),
  ].toSorted((one, other) => one.hookId - other.hookId);
  return splitRuns(ascending).flatMap((run) => runStatements(run, context));
}

function listRowChanges(changes: readonly HookQueueChange[], context: ChangeContext): RowWork[] {
  const ofRows = changes.filter((change) => change.kind !== 'health' && change.kind !== 'wake origin');
  return ofRows.map((change) => ({
    kind: 'change',
    hookId: change.hookId,
    statement: (STATEMENT_OF[change.kind] as (one: RowChange, by: ChangeContext) => BoundStatement)(change, context),
  }));
}

/** Groups adjacent changes of one kind, which go into one statement. */
function splitRuns(works: readonly RowWork[]): RowWork[][] {
  const runs: RowWork[][] = [];
  for (const work of works) {
    const run = runs.at(-1);
    if (run?.[0]?.kind === work.kind) run.push(work);
    else runs.push([work]);
  }
  return runs;
}

function runStatements(run: readonly RowWork[], { workerId }: ChangeContext): BoundStatement[] {
  const more = [workerId];
  if (run[0]?.kind === 'health')
    return bindRows(
      changeHealthSql,
      run.flatMap((work) => (work.kind === 'health' ? [work.row] : [])),
      { more },
    );
  if (run[0]?.kind === 'sleep')
    return bindRows(
      sleepSql,
      run.flatMap((work) => (work.kind === 'sleep' ? [work.row] : [])),
      { more },
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
    keepsPause: 'int',
    shard: 'int',
    epoch: 'int',
    generation: 'int',
  },
  ({ values, v, more }) => {
    const unlessKept = (column: string, value: string) =>
      `${column} = CASE WHEN ${v.keepsPause} = 1 THEN endpoint_queue.${column} ELSE ${value} END`;
    return `UPDATE endpoint_queue SET fails = ${v.fails}, failing_since_ms = ${v.failingSinceMs},
       ${unlessKept('parked', `(CASE WHEN ${v.pausedUntilMs} IS NULL THEN 0 ELSE 1 END)`)},
       next_at_ms = COALESCE(${v.pausedUntilMs}, endpoint_queue.next_at_ms),
       ${unlessKept('paused_since_ms', v.pausedSinceMs)}, ${unlessKept('pause_reason', v.pauseReason)},
       ${unlessKept('openings', v.openings)}
     FROM ${values}
     WHERE endpoint_queue.hook_id = ${v.hookId} AND ${isNeitherHeldNorCanceled}
       AND (${v.keepsPause} = 0 OR endpoint_queue.parked = 1)
       AND endpoint_queue.generation = ${v.generation}
       AND endpoint_queue.shard = ${v.shard} AND ${holdsLease(v.shard, v.epoch, more(1))}`;
  },
);

function listHealth(changes: readonly HookQueueChange[]): RowWork[] {
  const latest = new Map<number, HealthChange>();
  for (const change of changes)
    if (change.kind === 'health') latest.set(change.hookId, keepPause(latest.get(change.hookId), change));
  return [...latest.values()].map((change) => ({ kind: 'health', hookId: change.hookId, row: toHealthRow(change) }));
}

/** Merges a change that keeps the pause with an earlier change of the same transaction that has the pause. */
function keepPause(earlier: HealthChange | undefined, change: HealthChange): HealthChange {
  if (change.pause !== 'kept' || earlier === undefined) return change;
  return { ...change, pause: earlier.pause, openings: earlier.openings };
}

function toHealthRow(change: HealthChange) {
  const { pause: given, hookId, shard, epoch, generation, fails, failingSinceMs, openings } = change;
  const pause = given === 'kept' ? null : given;
  return {
    hookId,
    fails,
    failingSinceMs,
    pausedUntilMs: pause?.untilMs ?? null,
    pausedSinceMs: pause?.sinceMs ?? null,
    pauseReason: pause?.reason ?? null,
    openings,
    keepsPause: given === 'kept' ? 1 : 0,
    shard,
    epoch,
    generation,
  };
}

/** A hook queue with nothing due: it sleeps until its next retry, or until something is enqueued. */
export interface Sleep extends OwnedShard {
  readonly hookId: number;
  /** The version that the worker read. If an enqueue has raised it, the hook queue stays awake. */
  readonly version: number;
}

const headDue = (lane: number) =>
  `COALESCE((SELECT d.due_at_ms FROM deliveries d WHERE d.state = 'pending' AND d.hook_id = endpoint_queue.hook_id
     AND d.lane = ${lane} ORDER BY d.due_at_ms, d.id LIMIT 1), ${NEVER_MS})`;

const sleepSql = multiRowStatement(
  'endpoint-rest',
  { hookId: 'int', version: 'int', shard: 'int', epoch: 'int' },
  ({ values, v, more }) =>
    `UPDATE endpoint_queue SET parked = 0, paused_since_ms = NULL, pause_reason = NULL,
       next_at_ms = CASE WHEN ${headDue(0)} < ${headDue(1)} THEN ${headDue(0)} ELSE ${headDue(1)} END
     FROM ${values}
     WHERE endpoint_queue.hook_id = ${v.hookId} AND endpoint_queue.version = ${v.version}
       AND ${isNeitherHeldNorCanceled} AND ${holdsLease(v.shard, v.epoch, more(1))}
     RETURNING endpoint_queue.hook_id`,
);

/** Must run after the attempt results of the same transaction. */
function listSleepRows(sleeps: readonly Sleep[]): RowWork[] {
  return sleeps.map((sleep) => ({ kind: 'sleep', hookId: sleep.hookId, row: sleep }));
}
