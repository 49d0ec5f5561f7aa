/**
 * Simulates deliveries in virtual time: the worker's table of hook queues with its scheduler and circuit breakers, rows in memory as
 * the store, and functions as the receivers. The same seed gives the same run.
 */

import {
  admit,
  createHookQueueTable,
  markStored,
  pickJob,
} from '../../../src/webhooks/delivery/hook-queues/hook-queue-table.ts';
import {
  recordConnection,
  recordOutcome,
  takeDue,
} from '../../../src/webhooks/delivery/hook-queues/outcome-effects.ts';
import type { DueHookQueue } from '../../../src/webhooks/delivery/queue/delivery-queue-store.ts';
import type { HealthChange, HookQueueChange } from '../../../src/webhooks/delivery/queue/hook-queue-change-store.ts';
import type { Outcome } from '../../../src/webhooks/delivery/schedule/attempt-outcome.ts';
import { nextStep } from '../../../src/webhooks/delivery/schedule/delivery.ts';
import type { Job, Lane } from '../../../src/webhooks/delivery/schedule/turn-tree.ts';
import { realWorld, type World } from '../../../src/world.ts';
import { makeDueRow } from './due-hook-queue.ts';

export interface SimulatedHook {
  readonly hookId: number;
  readonly ownerId: string;
  readonly origin: string;
  readonly answer: Answer;
}

export type Answer = (request: { readonly nowMs: number; readonly random: number }) => SimulatedAnswer;

export interface SimulatedAnswer {
  readonly outcome: Outcome;
  readonly afterMs: number;
}

export const OK: Outcome = { kind: 'accepted', status: 200 };
export const ERROR: Outcome = { kind: 'refused', status: 500 };
export const SILENCE: Outcome = { kind: 'unreachable', reason: 'response timeout', stage: 'response' };
export const NO_CONNECTION: Outcome = { kind: 'unreachable', reason: 'connection refused', stage: 'connect' };

const FETCH = 64;
/** A connection takes this long. */
const CONNECT_MS = 1;
const ATTEMPT_MS = 15_000;

export interface SimulatedDelivery {
  readonly id: number;
  readonly hookId: number;
  readonly madeAtMs: number;
  attempts: number;
  firstAttemptAtMs: number | undefined;
  state: string;
  lane: Lane;
  dueAtMs: number;
}

interface SimulatedHookQueue {
  readonly hook: SimulatedHook;
  row: DueHookQueue;
  readonly pending: SimulatedDelivery[];
  readonly all: SimulatedDelivery[];
  /** When each attempt began. */
  readonly attemptsAtMs: number[];
}

export function createSimulation(hooks: readonly SimulatedHook[], seed = 1) {
  let nowMs = 0;
  /** How far the clock is from the time of the simulation. */
  let clockOffsetMs = 0;
  let lastId = 0;
  const random = createRandom(seed);
  const clockMs = () => nowMs + clockOffsetMs;
  const world = { ...realWorld, nowMs: clockMs, monotonicMs: () => nowMs, random };
  const timeline = createTimeline();
  const addByClock = (atMs: number, act: () => void) => timeline.add(Math.max(nowMs, atMs - clockOffsetMs), act);
  const store = createMemoryStore(hooks, { add: addByClock }, world);
  const table = createHookQueueTable(world);
  const { scheduler } = table;

  const load = (): void => {
    for (const { hook, row, pending } of store.hookQueues.values()) {
      if (row.next_at_ms > clockMs() || !pending.some((one) => one.dueAtMs <= clockMs())) continue;
      store.commit(takeDue(table, [row]));
      const hookQueue = table.hookQueues.get(hook.hookId);
      if (
        hookQueue === undefined ||
        hookQueue.state === 'draining' ||
        scheduler.countWaiting(hook.hookId, 'first') >= FETCH / 4
      )
        continue;
      const waiting = pending
        .filter((one) => one.dueAtMs <= clockMs() && !hookQueue.deliveryIds.has(one.id))
        .slice(0, FETCH);
      for (const { id, lane } of waiting)
        admit(table, hookQueue, { id, hook_id: hook.hookId, lane: lane === 'first' ? 0 : 1, body_bytes: 100 });
    }
  };

  const send = (job: Job): void => {
    const { hook, all, attemptsAtMs } = store.hookQueues.get(job.hookId)!;
    const hookQueue = table.hookQueues.get(job.hookId)!;
    const delivery = all.find((one) => one.id === job.id)!;
    delivery.firstAttemptAtMs ??= nowMs;
    attemptsAtMs.push(nowMs);
    const { outcome, afterMs } = hook.answer({ nowMs, random: random() });
    const isConnected = outcome.kind !== 'unreachable' || outcome.stage === 'response';
    if (isConnected) timeline.add(nowMs + CONNECT_MS, () => store.commit(recordConnection(table, hookQueue)));
    timeline.add(nowMs + Math.min(ATTEMPT_MS, CONNECT_MS + afterMs), () => {
      scheduler.finish(job);
      store.storeOutcome(delivery, outcome);
      store.commit(recordOutcome(table, hookQueue, outcome));
      markStored(table, [{ hookId: job.hookId, deliveryId: job.id, epoch: 1 }], []);
      scheduler.resume(hook.origin, hook.hookId);
    });
  };

  return {
    hookQueues: store.hookQueues,
    get sending() {
      return scheduler.sending;
    },
    /** `count` deliveries to a hook, the first at `fromMs`, each `everyMs` after the one before. */
    enqueue: (hookId: number, { fromMs = 0, everyMs = 0, count }: Arrivals) => {
      for (let index = 0; index < count; index += 1) {
        const atMs = fromMs + index * everyMs;
        timeline.add(atMs, () => store.insert({ ...createDelivery(++lastId, hookId, atMs), dueAtMs: clockMs() }));
      }
    },
    /** At this moment the clock jumps. */
    moveClock: (atMs: number, byMs: number) => {
      timeline.add(atMs, () => {
        clockOffsetMs += byMs;
        // What becomes due later than planned.
        for (const { row } of store.hookQueues.values()) addByClock(row.next_at_ms, () => {});
      });
    },
    /** Calls `look` after each moment at which something happened. */
    run: (untilMs: number, look: (nowMs: number) => void = () => {}) => {
      for (let moment = timeline.next(untilMs); moment !== undefined; moment = timeline.next(untilMs)) {
        nowMs = moment.atMs;
        for (const act of moment.acts) act();
        load();
        for (let job = pickJob(table); job !== undefined; job = pickJob(table)) send(job);
        look(nowMs);
      }
      nowMs = untilMs;
    },
  };
}

/** The rows of hook queues and deliveries. A row that becomes due later is a moment of the timeline. */
function createMemoryStore(
  hooks: readonly SimulatedHook[],
  timeline: Pick<ReturnType<typeof createTimeline>, 'add'>,
  world: Pick<World, 'nowMs' | 'random'>,
) {
  const hookQueues = new Map(hooks.map((hook) => [hook.hookId, createHookQueue(hook)]));

  function storeHealth({ hookId, fails, failingSinceMs, openings, pause }: HealthChange): void {
    const hookQueue = hookQueues.get(hookId)!;
    if (pause === 'kept') {
      if (hookQueue.row.parked === 1) hookQueue.row = { ...hookQueue.row, fails, failing_since_ms: failingSinceMs };
      return;
    }
    hookQueue.row = {
      ...hookQueue.row,
      fails,
      failing_since_ms: failingSinceMs,
      openings,
      parked: pause === null ? 0 : 1,
      next_at_ms: pause?.untilMs ?? world.nowMs(),
      paused_since_ms: pause?.sinceMs ?? null,
      pause_reason: pause?.reason ?? null,
    };
    timeline.add(hookQueue.row.next_at_ms, () => {});
  }

  function wakeOrigin(origin: string): void {
    for (const one of hookQueues.values())
      if (one.hook.origin === origin && one.row.pause_reason === 'no_connection')
        one.row = { ...one.row, parked: 0, next_at_ms: world.nowMs() };
  }

  return {
    hookQueues,
    insert(delivery: SimulatedDelivery): void {
      const { pending, all } = hookQueues.get(delivery.hookId)!;
      pending.push(delivery);
      all.push(delivery);
    },
    commit(changes: readonly HookQueueChange[]): void {
      for (const change of changes) {
        if (change.kind === 'health') storeHealth(change);
        if (change.kind === 'wake origin') wakeOrigin(change.origin);
      }
    },
    storeOutcome(delivery: SimulatedDelivery, outcome: Outcome): void {
      const nowMs = world.nowMs();
      delivery.attempts += 1;
      const step = nextStep(outcome, { attempt: delivery.attempts, nowMs, random: world.random() });
      delivery.state = step.state;
      delivery.lane = 'retry';
      delivery.dueAtMs = step.dueAtMs ?? nowMs;
      const { pending } = hookQueues.get(delivery.hookId)!;
      if (step.state !== 'pending') pending.splice(pending.indexOf(delivery), 1);
      else timeline.add(delivery.dueAtMs, () => {});
    },
  };
}

interface Arrivals {
  readonly fromMs?: number;
  readonly everyMs?: number;
  readonly count: number;
}

/** How long deliveries waited for their first attempt; those without one count until `untilMs`. */
export function listWaits(hookQueue: SimulatedHookQueue | undefined, untilMs: number): number[] {
  return (hookQueue?.all ?? []).map(({ firstAttemptAtMs = untilMs, madeAtMs }) => firstAttemptAtMs - madeAtMs);
}

function createDelivery(id: number, hookId: number, nowMs: number): SimulatedDelivery {
  const base = { attempts: 0, firstAttemptAtMs: undefined, state: 'pending', lane: 'first' as const };
  return { id, hookId, madeAtMs: nowMs, dueAtMs: nowMs, ...base };
}

function createHookQueue(hook: SimulatedHook): SimulatedHookQueue {
  const row = makeDueRow({ hook_id: hook.hookId, owner_id: hook.ownerId, origin: hook.origin, shard: 0 });
  return { hook, row, pending: [], all: [], attemptsAtMs: [] };
}

/** Acts by their time; those of the same time in the order in which they were added. */
function createTimeline() {
  const actsByTime = new Map<number, (() => void)[]>();
  const times: number[] = [];
  return {
    add: (atMs: number, act: () => void): void => {
      const acts = actsByTime.get(atMs);
      if (acts !== undefined) return void acts.push(act);
      actsByTime.set(atMs, [act]);
      pushTime(times, atMs);
    },
    next: (untilMs: number) => {
      const atMs = times.at(-1);
      if (atMs === undefined || atMs > untilMs) return undefined;
      times.pop();
      const acts = actsByTime.get(atMs) ?? [];
      actsByTime.delete(atMs);
      return { atMs, acts };
    },
  };
}

/** Keeps the times in falling order, so that the next one is the last. */
function pushTime(times: number[], atMs: number): void {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! > atMs) low = middle + 1;
    else high = middle;
  }
  times.splice(low, 0, atMs);
}

/** Mulberry32: uniform in [0, 1). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
