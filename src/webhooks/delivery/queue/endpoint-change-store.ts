/**
 * What attempts mean for endpoints and hooks: values, and the steps that store them. Every step names its rows and may run
 * twice, so a unit that failed is written again as it is.
 */
import { type Row, type SqlValue, type Statement, type Step, statement } from '../../../database/store.ts';
import { renderValueRows, wideStatement, wideSteps } from '../../../database/value-rows.ts';
import type { EndpointHealth } from '../schedule/disable-failing-hook.ts';
import type { Pause } from '../schedule/pause-reason.ts';
import { countFailureStep, recoverEndpointStep } from './delivery-restart-store.ts';
import {
  cancelEndpointStep,
  holdEndpointStep,
  holdSeenEndpointStep,
  isOpen,
  moveEndpointStep,
  NEVER_MS,
} from './delivery-store.ts';

/** How the endpoint fares, and whether it is paused. Only the latest of a hook counts. */
export interface HealthChange extends EndpointHealth {
  readonly kind: 'health';
  readonly hookId: number;
  /** How often the hook's breaker opened since it was last closed. */
  readonly openings: number;
  /** Null when it may send. */
  readonly pause: Pause | null;
}

export type EndpointChange =
  | HealthChange
  /** The hook is switched off, and what is pending is held. */
  | { readonly kind: 'disable'; readonly hookId: number; readonly reason: string }
  /** The hook was found switched off, in the version of the row that was read. */
  | { readonly kind: 'hold'; readonly hookId: number; readonly version: number }
  /** The hook was deleted. */
  | { readonly kind: 'cancel'; readonly hookId: number }
  /** The hook's URL has another origin. */
  | { readonly kind: 'move'; readonly hookId: number; readonly origin: string }
  /** The origin can be connected to again: its endpoints need not wait for probes of their own. */
  | { readonly kind: 'wake origin'; readonly origin: string }
  /** A manual attempt was accepted: the endpoint's pause ends. */
  | { readonly kind: 'recover'; readonly hookId: number }
  /** A manual attempt failed, which counts like any other failure. */
  | { readonly kind: 'count failure'; readonly hookId: number };

type ChangeOf<Kind> = Extract<EndpointChange, { kind: Kind }>;

/** Of one row each. Health is stored for many at once, and an origin is woken by itself (`wakeOrigin`). */
type RowChange = Exclude<EndpointChange, { kind: 'health' | 'wake origin' }>;

const STEP_OF: { readonly [K in RowChange['kind']]: (change: ChangeOf<K>, nowMs: number) => Step } = {
  disable: ({ hookId }, nowMs) => holdEndpointStep(hookId, nowMs),
  hold: ({ hookId, version }, nowMs) => holdSeenEndpointStep(hookId, version, nowMs),
  cancel: ({ hookId }, nowMs) => cancelEndpointStep(hookId, nowMs),
  move: ({ hookId, origin }) => moveEndpointStep(hookId, origin),
  recover: ({ hookId }, nowMs) => recoverEndpointStep(hookId, nowMs),
  'count failure': ({ hookId }, nowMs) => countFailureStep(hookId, nowMs),
};

/** One row of `endpoint_queue` that a unit changes. */
type RowWork =
  | { readonly kind: 'change'; readonly hookId: number; readonly step: Step }
  | { readonly kind: 'health'; readonly hookId: number; readonly row: SqlValue[] }
  | { readonly kind: 'sleep'; readonly hookId: number; readonly row: SqlValue[] };

/**
 * All that a unit changes in `endpoint_queue`, in ascending order of hooks: two units that lock the same rows in different
 * orders would wait for each other. Of one hook: its changes in their order, its latest health, its sleep.
 */
export function endpointSteps(changes: readonly EndpointChange[], sleeps: readonly Sleep[], nowMs: number): Step[] {
  const ascending = [...listRowChanges(changes, nowMs), ...listHealth(changes), ...listSleepRows(sleeps)].sort(
    (one, other) => one.hookId - other.hookId,
  );
  return splitRuns(ascending).flatMap(runSteps);
}

function listRowChanges(changes: readonly EndpointChange[], nowMs: number): RowWork[] {
  const ofRows = changes.filter((change) => change.kind !== 'health' && change.kind !== 'wake origin');
  return ofRows.map((change) => ({
    kind: 'change',
    hookId: change.hookId,
    step: (STEP_OF[change.kind] as (one: RowChange, at: number) => Step)(change, nowMs),
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

function runSteps(run: readonly RowWork[]): Step[] {
  const rows = run.flatMap((work) => (work.kind === 'change' ? [] : [work.row]));
  if (run[0]?.kind === 'health') return wideSteps(changeHealth, rows);
  if (run[0]?.kind === 'sleep') return wideSteps(sleepEndpoints, rows);
  return run.flatMap((work) => (work.kind === 'change' ? [work.step] : []));
}

// −1 and '' stand for null: a list of values has one type a column.
const changeHealth = wideStatement<Row>(
  'endpoint_change',
  (width) =>
    `UPDATE endpoint_queue SET fails = v.column2,
       failing_since_ms = CASE WHEN v.column3 = -1 THEN NULL ELSE v.column3 END,
       parked = CASE WHEN v.column4 = -1 THEN 0 ELSE 1 END,
       next_at_ms = CASE WHEN v.column4 = -1 THEN endpoint_queue.next_at_ms ELSE v.column4 END,
       paused_since_ms = CASE WHEN v.column4 = -1 THEN NULL ELSE v.column5 END,
       pause_reason = CASE WHEN v.column4 = -1 THEN NULL ELSE v.column6 END,
       openings = v.column7
     FROM (VALUES ${renderValueRows(['int', 'int', 'int', 'int', 'int', 'text', 'int'], width)}) AS v
     WHERE endpoint_queue.hook_id = v.column1
       AND ${isOpen}`,
);

function listHealth(changes: readonly EndpointChange[]): RowWork[] {
  const latest = new Map<number, HealthChange>();
  for (const change of changes) if (change.kind === 'health') latest.set(change.hookId, change);
  return [...latest.values()].map(({ hookId, fails, failingSinceMs, openings, pause }) => ({
    kind: 'health',
    hookId,
    row: [
      hookId,
      fails,
      failingSinceMs ?? -1,
      pause?.untilMs ?? -1,
      pause?.sinceMs ?? -1,
      pause?.reason ?? '',
      openings,
    ],
  }));
}

/** An endpoint without anything due: it sleeps until its next retry, or until something is enqueued. */
export interface Sleep {
  readonly hookId: number;
  /** As the worker saw it: an enqueue since then counts up, and the endpoint stays awake. */
  readonly version: number;
}

const headDue = (lane: number) =>
  `COALESCE((SELECT d.due_at_ms FROM deliveries d WHERE d.state = 'pending' AND d.hook_id = endpoint_queue.hook_id
     AND d.lane = ${lane} ORDER BY d.due_at_ms, d.id LIMIT 1), ${NEVER_MS})`;

const sleepEndpoints = wideStatement<{ hook_id: number }>(
  'endpoint_rest',
  (width) =>
    `UPDATE endpoint_queue SET parked = 0, paused_since_ms = NULL, pause_reason = NULL,
       next_at_ms = CASE WHEN ${headDue(0)} < ${headDue(1)} THEN ${headDue(0)} ELSE ${headDue(1)} END
     FROM (VALUES ${renderValueRows(['int', 'int'], width)}) AS v
     WHERE endpoint_queue.hook_id = v.column1 AND endpoint_queue.version = v.column2
       AND ${isOpen}
     RETURNING endpoint_queue.hook_id`,
);

/** After the attempt results of the same transaction. */
function listSleepRows(sleeps: readonly Sleep[]): RowWork[] {
  return sleeps.map(({ hookId, version }) => ({ kind: 'sleep', hookId, row: [hookId, version] }));
}

const disableHook: Statement = statement(
  'hook_disable_failing',
  `UPDATE hooks SET disabled_at_ms = $2, disabled_reason = $3, updated_at_ms = $2 WHERE id = $1 AND disabled_at_ms IS NULL`,
);

/** Rows of `hooks`: after all of `endpoint_queue`, ascending too. */
export function hookSteps(changes: readonly EndpointChange[], results: readonly HookResult[], nowMs: number): Step[] {
  const disabled = changes.filter((change) => change.kind === 'disable');
  const disabling = disabled.map(({ hookId, reason }) => ({
    hookId,
    steps: [{ statement: disableHook, parameters: [hookId, nowMs, reason] }],
  }));
  if (disabling.length === 0) return hookResultSteps(results);
  const answered = results.map((result) => ({ hookId: result.hookId, steps: hookResultSteps([result]) }));
  return [...disabling, ...answered].sort((one, other) => one.hookId - other.hookId).flatMap(({ steps }) => steps);
}

/** The last answer of a hook. */
export interface HookResult {
  readonly hookId: number;
  readonly result: string;
  readonly status: number;
}

const writeResults = wideStatement<Row>(
  'hook_write_result',
  (width) =>
    `UPDATE hooks SET result = v.column2, result_code = v.column3
     FROM (VALUES ${renderValueRows(['int', 'text', 'int'], width)}) AS v WHERE hooks.id = v.column1`,
);

/** One row a hook. */
function hookResultSteps(results: readonly HookResult[]): Step[] {
  const ascending = [...results].sort((one, other) => one.hookId - other.hookId);
  return wideSteps(
    writeResults,
    ascending.map(({ hookId, result, status }) => [hookId, result, status]),
  );
}
