/**
 * Changes health and breaker of a hook queue in memory, and resets them in a new generation: after a release, a move or a recovery.
 * `hook-queue.ts` lists the events that change them. Only the functions of this file do so.
 */
import type { DueHookQueue } from '../queue/delivery-queue-store.ts';
import { type Outcome, toBreakerEvents } from '../schedule/attempt-outcome.ts';
import {
  advanceBreaker,
  type Breaker,
  type BreakerEvent,
  type BreakerMoment,
  CLOSED_BREAKER,
  HOOK_RULES,
  restoreBreaker,
} from '../schedule/breaker.ts';
import { HEALTHY, type HookHealth, updateHealth } from '../schedule/disable-failing-hook.ts';
import { PROBE_REQUESTED } from '../schedule/pause-reason.ts';

export interface HookQueueHealth {
  /** The generation of its row that `health` and `breaker` belong to. */
  readonly generation: number;
  readonly health: HookHealth;
  readonly breaker: Breaker;
}

type WritableHealth = { -readonly [Field in keyof HookQueueHealth]: HookQueueHealth[Field] };

/** Health and breaker are read-only outside this file. */
function toWritable(hookQueue: HookQueueHealth): WritableHealth {
  return hookQueue;
}

export function readHealth(row: DueHookQueue): HookQueueHealth {
  const health = { fails: row.fails, failingSinceMs: row.failing_since_ms };
  return { generation: row.generation, health, breaker: readBreaker(row) };
}

/** The hook's breaker from its row. A pause for `no_connection` belongs to the origin's breaker, even after a person ended it. */
function readBreaker(row: DueHookQueue): Breaker {
  const isOfOrigin = row.pause_reason === 'no_connection' || row.pause_reason === PROBE_REQUESTED;
  return restoreBreaker({
    isPaused: row.parked === 1 && !isOfOrigin,
    fails: isOfOrigin ? 0 : row.fails,
    openings: row.openings,
    sinceMs: row.paused_since_ms ?? row.next_at_ms,
    untilMs: row.next_at_ms,
  });
}

/** The row has a later generation: the hook was released, was moved or has recovered. Takes failures and pause from the row. */
export function renewHealth(hookQueue: HookQueueHealth, row: DueHookQueue): void {
  Object.assign(toWritable(hookQueue), readHealth(row));
}

/** The generation has risen, and no scan has found the row yet. Begins without failures, with a closed breaker. */
export function forgetHealth(hookQueue: HookQueueHealth, generation: number): void {
  Object.assign(toWritable(hookQueue), { generation, health: HEALTHY, breaker: CLOSED_BREAKER });
}

export function advanceHook(hookQueue: HookQueueHealth, event: BreakerEvent, moment: BreakerMoment): void {
  toWritable(hookQueue).breaker = advanceBreaker(hookQueue.breaker, event, { ...moment, rules: HOOK_RULES });
}

/** Updates health and breaker. Returns whether the count of failures changed, which then has to be stored. */
export function recordHookOutcome(hookQueue: HookQueueHealth, outcome: Outcome, moment: BreakerMoment): boolean {
  const { ofHook } = toBreakerEvents(outcome);
  const hasChanged = recordHealth(hookQueue, outcome, moment.nowMs);
  if (ofHook !== undefined) advanceHook(hookQueue, ofHook, moment);
  return hasChanged;
}

/** Updates health alone. Returns whether the count of failures changed. */
export function recordHealth(hookQueue: HookQueueHealth, outcome: Outcome, nowMs: number): boolean {
  const { fails } = hookQueue.health;
  toWritable(hookQueue).health = updateHealth(hookQueue.health, outcome, nowMs);
  return hookQueue.health.fails !== fails;
}
