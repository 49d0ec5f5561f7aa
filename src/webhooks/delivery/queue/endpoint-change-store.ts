/**
 * What attempts mean for endpoints and hooks: values, and the steps that store them. Every step names its rows and may run
 * twice, so a unit that failed is written again as it is.
 */
import { type Row, type Statement, type Step, statement } from '../../../database/store.ts';
import { renderValueRows, wideStatement, wideSteps } from '../../../database/value-rows.ts';
import type { EndpointHealth } from '../schedule/delivery.ts';
import type { Pause } from '../schedule/pause.ts';
import { countFailureStep, recoverEndpointStep, wakeOriginStep } from './delivery-restart-store.ts';
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

const STEP_OF: { readonly [K in EndpointChange['kind']]: (change: ChangeOf<K>, nowMs: number) => Step | undefined } = {
  // All in one statement, see `healthSteps`.
  health: () => undefined,
  disable: ({ hookId }, nowMs) => holdEndpointStep(hookId, nowMs),
  hold: ({ hookId, version }, nowMs) => holdSeenEndpointStep(hookId, version, nowMs),
  cancel: ({ hookId }, nowMs) => cancelEndpointStep(hookId, nowMs),
  move: ({ hookId, origin }) => moveEndpointStep(hookId, origin),
  'wake origin': ({ origin }, nowMs) => wakeOriginStep(origin, nowMs),
  recover: ({ hookId }, nowMs) => recoverEndpointStep(hookId, nowMs),
  'count failure': ({ hookId }, nowMs) => countFailureStep(hookId, nowMs),
};

/** Changes of `endpoint_queue` in their order, then the latest health of each endpoint. */
export function changeSteps(changes: readonly EndpointChange[], nowMs: number): Step[] {
  const steps = changes.map((change) =>
    (STEP_OF[change.kind] as (one: EndpointChange, at: number) => Step | undefined)(change, nowMs),
  );
  return [...steps.filter((step) => step !== undefined), ...healthSteps(changes)];
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

function healthSteps(changes: readonly EndpointChange[]): Step[] {
  const latest = new Map<number, HealthChange>();
  for (const change of changes) if (change.kind === 'health') latest.set(change.hookId, change);
  const ascending = [...latest.values()].sort((one, other) => one.hookId - other.hookId);
  const rows = ascending.map(({ hookId, fails, failingSinceMs, openings, pause }) => [
    hookId,
    fails,
    failingSinceMs ?? -1,
    pause?.untilMs ?? -1,
    pause?.sinceMs ?? -1,
    pause?.reason ?? '',
    openings,
  ]);
  return wideSteps(changeHealth, rows);
}

/** An endpoint without anything due: it sleeps until its next retry, or until something is enqueued. */
export interface Rest {
  readonly hookId: number;
  /** As the worker saw it: an enqueue since then counts up, and the endpoint does not rest. */
  readonly version: number;
}

const headDue = (lane: number) =>
  `COALESCE((SELECT d.due_at_ms FROM deliveries d WHERE d.state = 'pending' AND d.hook_id = endpoint_queue.hook_id
     AND d.lane = ${lane} ORDER BY d.due_at_ms, d.id LIMIT 1), ${NEVER_MS})`;

const restEndpoints = wideStatement<{ hook_id: number }>(
  'endpoint_rest',
  (width) =>
    `UPDATE endpoint_queue SET parked = 0, paused_since_ms = NULL, pause_reason = NULL,
       next_at_ms = CASE WHEN ${headDue(0)} < ${headDue(1)} THEN ${headDue(0)} ELSE ${headDue(1)} END
     FROM (VALUES ${renderValueRows(['int', 'int'], width)}) AS v
     WHERE endpoint_queue.hook_id = v.column1 AND endpoint_queue.version = v.column2
       AND ${isOpen}
     RETURNING endpoint_queue.hook_id`,
);

/** After the settlements of the same unit. */
export function restSteps(rests: readonly Rest[]): Step[] {
  const ascending = [...rests].sort((one, other) => one.hookId - other.hookId);
  return wideSteps(
    restEndpoints,
    ascending.map(({ hookId, version }) => [hookId, version]),
  );
}

const disableHook: Statement = statement(
  'hook_disable_failing',
  `UPDATE hooks SET disabled_at_ms = $2, disabled_reason = $3, updated_at_ms = $2 WHERE id = $1 AND disabled_at_ms IS NULL`,
);

/** Rows of `hooks`: after all of `endpoint_queue`. */
export function disableSteps(changes: readonly EndpointChange[], nowMs: number): Step[] {
  const disabled = changes.filter((change) => change.kind === 'disable');
  return disabled.map(({ hookId, reason }) => ({ statement: disableHook, parameters: [hookId, nowMs, reason] }));
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
export function hookResultSteps(results: readonly HookResult[]): Step[] {
  const ascending = [...results].sort((one, other) => one.hookId - other.hookId);
  return wideSteps(
    writeResults,
    ascending.map(({ hookId, result, status }) => [hookId, result, status]),
  );
}
