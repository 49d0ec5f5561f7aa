/**
 * Applies the outcome of an attempt: the hook continues, is paused or is disabled, and a failing origin pauses all its hooks. Each
 * function updates the table in memory and returns the changes that have to be stored.
 */
import type { DueHookQueue } from '../queue/delivery-queue-store.ts';
import type { HealthChange, HookQueueChange } from '../queue/hook-queue-change-store.ts';
import { type Outcome, toBreakerEvents } from '../schedule/attempt-outcome.ts';
import { type Breaker, type BreakerEvent, type BreakerMoment, isPauseOver } from '../schedule/breaker.ts';
import { findDisableReason } from '../schedule/disable-failing-hook.ts';
import type { OriginChange } from '../schedule/origin-breakers.ts';
import { ORIGIN_RECONNECTED, type Pause, PROBE_REQUESTED } from '../schedule/pause-reason.ts';
import { type HookQueue, recordPause } from './hook-queue.ts';
import { advanceHook, recordHealth, recordHookOutcome } from './hook-queue-health.ts';
import {
  drain,
  ensureHookQueue,
  type HookQueueTable,
  hasRoom,
  listHookQueues,
  takeMoment,
} from './hook-queue-table.ts';

/** After a failed probe its hook waits this much longer, so that another hook of the origin makes the next one. */
const NEXT_PROBE_MS = 1000;
/** Other hook queues of an owner count as waiting for room if one was refused within this time. */
const WAITING_FOR_MS = 1000;

const BEGIN: BreakerEvent = { kind: 'begin' };
const SUCCESS: BreakerEvent = { kind: 'success' };

/** Takes the rows of a scan into memory, except hook queues that a breaker pauses. */
export function takeDue(table: HookQueueTable, rows: readonly DueHookQueue[]): HookQueueChange[] {
  return rows.flatMap((row) => {
    const hookQueue = ensureHookQueue(table, row);
    if (hookQueue === undefined) return [];
    const changes = endPauseOfOrigin(table, hookQueue, row);
    const pauses = pauseIfKeptBack(table, hookQueue);
    if (pauses.length === 0) resumeAfterPause(table, hookQueue);
    return [...changes, ...pauses];
  });
}

/**
 * Resumes after the pause of a breaker. If the clock went back since an earlier scan, the scheduler may have skipped the hook as
 * still paused, and nothing else would resume it.
 */
function resumeAfterPause({ origins, scheduler }: HookQueueTable, { breaker, origin, hookId }: HookQueue): void {
  if (breaker.state === 'open' || origins.find(origin).state === 'open') scheduler.resume(origin, hookId);
}

/** If the row says that its pause ended early, ends the pause of the origin in this process too. */
function endPauseOfOrigin(
  table: HookQueueTable,
  hookQueue: HookQueue,
  { pause_reason }: DueHookQueue,
): HookQueueChange[] {
  if (pause_reason === ORIGIN_RECONNECTED) return recordProbeElsewhere(table, hookQueue);
  if (pause_reason === PROBE_REQUESTED)
    table.origins.record(hookQueue.origin, { kind: 'end_pause' }, takeMoment(table));
  return [];
}

/** Another process could connect to the origin: the breaker counts that as a successful probe, although the pause is not over. */
function recordProbeElsewhere(table: HookQueueTable, { origin }: HookQueue): HookQueueChange[] {
  if (table.origins.find(origin).state !== 'open') return [];
  return followOrigin(table, origin, probeOrigin(table, origin, SUCCESS));
}

/** Records that a scheduled attempt is connected. A probe of the origin has succeeded with that, however long the response takes. */
export function recordConnection(table: HookQueueTable, { origin, hookId }: HookQueue): HookQueueChange[] {
  const moment = takeMoment(table);
  if (table.origins.find(origin).state !== 'probing') return [];
  const change = table.origins.record(origin, SUCCESS, moment);
  if (!change.hasOriginRecovered) return [];
  const changes = followOrigin(table, origin, change);
  table.scheduler.resume(origin, hookId);
  return changes;
}

/** Records the outcome of a scheduled attempt. */
export function recordOutcome(table: HookQueueTable, hookQueue: HookQueue, outcome: Outcome): HookQueueChange[] {
  const moment = takeMoment(table);
  const hasHealthChanged = recordHookOutcome(hookQueue, outcome, moment);
  const { ofOrigin } = toBreakerEvents(outcome);
  const origin = ofOrigin && table.origins.record(hookQueue.origin, ofOrigin, moment);
  const pause = findPause(table, hookQueue, moment.nowMs);
  const pauses =
    pause === undefined ? [] : pauseFor(table, hookQueue, origin?.hasOriginOpened ? delayProbe(pause) : pause);
  const changes = [...pauses, ...followOrigin(table, hookQueue.origin, origin)];
  const reason = findDisableReason(hookQueue.health, outcome, moment.nowMs);
  if (reason !== undefined) return [...changes, disable(table, hookQueue, reason)];
  if (pauses.length > 0 || !hasHealthChanged) return changes;
  return [...changes, createHealthChange(hookQueue, pause === undefined ? null : 'kept')];
}

/**
 * Records the outcome of a scheduled attempt whose hook was released or moved, or has recovered, since it began (the generation has
 * risen). The outcome counts for the origin, not for the hook.
 */
export function recordFormerOutcome(table: HookQueueTable, { origin }: HookQueue, outcome: Outcome): HookQueueChange[] {
  const { ofOrigin } = toBreakerEvents(outcome);
  return followOrigin(table, origin, ofOrigin && table.origins.record(origin, ofOrigin, takeMoment(table)));
}

/**
 * Makes room after a scheduled attempt: the hook queue leaves memory if others of its owner wait for room, and comes back after them.
 * A hook queue with no waiting delivery stays, and sleeps after its last attempt.
 */
export function makeRoom(table: HookQueueTable, hookQueue: HookQueue): HookQueueChange[] {
  if (!shouldMakeRoom(table, hookQueue)) return [];
  drain(table, hookQueue);
  const { hookId, shard, epoch } = hookQueue;
  return [{ kind: 'make room', hookId, shard, epoch }];
}

/** Whether the hook queue was in memory for `minStayMs`, may have more to send, and others of its owner wait for its place. */
function shouldMakeRoom(table: HookQueueTable, { hookId, ownerId, state, enteredAtMs }: HookQueue): boolean {
  const { room, refusedAtMs, scheduler, world } = table;
  const nowMs = world.monotonicMs();
  const areOthersWaiting = nowMs - (refusedAtMs.get(ownerId) ?? Number.NEGATIVE_INFINITY) < WAITING_FOR_MS;
  // A hook queue whose attempts are under way stays in memory until they end in any case.
  const isWaiting = scheduler.countWaiting(hookId, 'first') + scheduler.countWaiting(hookId, 'retry') > 0;
  const mayHaveMore = state === 'loading' || (state === 'loaded' && isWaiting);
  return areOthersWaiting && !hasRoom(table, ownerId) && mayHaveMore && nowMs - enteredAtMs >= room.minStayMs;
}

/**
 * Records the outcome of a manual attempt, which ignores breakers, and whose hook queue need not be in memory. A success ends the
 * pauses of hook and origin. A failure, also 429, counts for the hook's breaker only when a probe was due, so that no caller can begin
 * or lengthen a pause with many requests. Changes of the hook itself are stored with the result (`result-batch.ts`).
 */
export function recordManualOutcome(
  table: HookQueueTable,
  { hookId, origin, generation }: Pick<HookQueue, 'hookId' | 'origin' | 'generation'>,
  outcome: Outcome,
): HookQueueChange[] {
  const { ofOrigin } = toBreakerEvents(outcome);
  const hookQueue = table.hookQueues.get(hookId);
  if (hookQueue?.generation === generation) recordManualOutcomeOfHook(hookQueue, outcome, takeMoment(table));
  const changes = followOrigin(table, origin, ofOrigin && probeOrigin(table, origin, ofOrigin));
  table.scheduler.resume(origin, hookId);
  return changes;
}

function recordManualOutcomeOfHook(hookQueue: HookQueue, outcome: Outcome, moment: BreakerMoment): void {
  const { ofHook } = toBreakerEvents(outcome);
  const { breaker } = hookQueue;
  const isProbeDue = breaker.state === 'open' && isPauseOver(breaker, moment.nowMs);
  if (ofHook?.kind !== 'success' && !isProbeDue) return void recordHealth(hookQueue, outcome, moment.nowMs);
  advanceHook(hookQueue, BEGIN, beginProbe(ofHook, moment));
  recordHookOutcome(hookQueue, outcome, moment);
}

function probeOrigin(table: HookQueueTable, origin: string, event: BreakerEvent): OriginChange {
  const moment = takeMoment(table);
  table.origins.record(origin, BEGIN, beginProbe(event, moment));
  return table.origins.record(origin, event, moment);
}

/** The moment at which a probe begins; for a success the end of time, so that the attempt counts as a probe during any pause. */
function beginProbe(event: BreakerEvent | undefined, moment: BreakerMoment): BreakerMoment {
  return event?.kind === 'success' ? { ...moment, nowMs: Number.POSITIVE_INFINITY } : moment;
}

/** When the breaker of an origin opened, pauses all its hook queues; when the origin recovered, wakes those that are paused. */
function followOrigin(table: HookQueueTable, origin: string, change: OriginChange | undefined): HookQueueChange[] {
  const kept = change?.hasOriginOpened ? listHookQueues(table, (one) => one.origin === origin) : [];
  const pauses = kept.flatMap((hookQueue) => pauseIfKeptBack(table, hookQueue));
  return change?.hasOriginRecovered ? [...pauses, { kind: 'wake origin', origin }] : pauses;
}

function pauseIfKeptBack(table: HookQueueTable, hookQueue: HookQueue): HookQueueChange[] {
  const pause = findPause(table, hookQueue, table.world.nowMs());
  return pause === undefined ? [] : pauseFor(table, hookQueue, pause);
}

/**
 * Stores the pause in the row, and drains the hook queue. An attempt that is still under way may later return a longer pause, or the
 * first one if the hook queue was making room. A row that is held, canceled, moved or under another lease stays as it is.
 */
function pauseFor(table: HookQueueTable, hookQueue: HookQueue, pause: Pause): HookQueueChange[] {
  const { state, pausedUntilMs = Number.NEGATIVE_INFINITY } = hookQueue;
  if (state === 'draining' && pause.untilMs <= pausedUntilMs) return [];
  recordPause(hookQueue, pause.untilMs);
  drain(table, hookQueue);
  return [createHealthChange(hookQueue, pause)];
}

function disable(table: HookQueueTable, hookQueue: HookQueue, reason: string): HookQueueChange {
  drain(table, hookQueue);
  const { hookId, shard, epoch, generation } = hookQueue;
  return { kind: 'disable', hookId, reason, under: { shard, epoch, generation } };
}

function createHealthChange(
  { hookId, shard, epoch, generation, health, breaker }: HookQueue,
  pause: HealthChange['pause'],
): HookQueueChange {
  return { kind: 'health', hookId, shard, epoch, generation, ...health, openings: breaker.openings, pause };
}

function delayProbe(pause: Pause): Pause {
  return { ...pause, untilMs: pause.untilMs + NEXT_PROBE_MS };
}

/** The pause of the hook or of its origin, whichever ends later; undefined if neither is paused. */
function findPause({ origins }: HookQueueTable, { breaker, origin }: HookQueue, nowMs: number): Pause | undefined {
  const ofHook = describePause(breaker, nowMs, breaker.isFromRetryAfter ? 'retry_after' : 'failures');
  const ofOrigin = describePause(origins.find(origin), nowMs, 'no_connection');
  if (ofHook === undefined || ofOrigin === undefined) return ofHook ?? ofOrigin;
  return ofHook.untilMs >= ofOrigin.untilMs ? ofHook : ofOrigin;
}

function describePause(breaker: Breaker, nowMs: number, reason: Pause['reason']): Pause | undefined {
  if (breaker.state !== 'open' || isPauseOver(breaker, nowMs)) return undefined;
  return { sinceMs: breaker.sinceMs, untilMs: breaker.untilMs, reason };
}
