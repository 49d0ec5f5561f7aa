/**
 * Keeps the hook queues that a worker has in memory, and returns those of their changes that have to be stored. Every stage of the
 * worker reads and changes this table with the functions of this file. After a crash the whole table is read again from
 * `endpoint_queue` and `deliveries`.
 */
import type { World } from '../../../world.ts';
import { type AttemptResult, OUTSIDE_SHARDS } from '../queue/attempt-result-store.ts';
import type { DueHookQueue, WaitingRow } from '../queue/delivery-queue-store.ts';
import { toLane } from '../queue/delivery-state.ts';
import type { Sleep } from '../queue/hook-queue-change-store.ts';
import { allowedAttempts, type BreakerMoment, CLOSED_BREAKER } from '../schedule/breaker.ts';
import { CAPS, OWNER_ROOM, type OwnerRoom } from '../schedule/concurrency-limits.ts';
import { createOriginBreakers, type OriginBreakers } from '../schedule/origin-breakers.ts';
import { createScheduler, type Scheduler } from '../schedule/scheduler.ts';
import type { Job, Lane } from '../schedule/turn-tree.ts';
import {
  addDelivery,
  countEnqueue,
  countStored,
  createHookQueue,
  dropDelivery,
  followVersion,
  forgetDelivery,
  type HookQueue,
  type HookQueueIndex,
  hasDrained,
  leaveIndex,
  recordVersion,
  startDraining,
  updateIndex,
} from './hook-queue.ts';
import { advanceHook, renewHealth } from './hook-queue-health.ts';

/** While fewer deliveries of a lane than this wait in memory, more are read. */
export const REFILL_BELOW = 16;
/** A hook queue stays in memory for this long after its last delivery: putting it to sleep and finding it again would cost more. */
export const LINGER_MS = 2000;
/** With more hook queues than this in memory, each stays for `SHORT_LINGER_MS`: every scan reads the rows of all that do not sleep. */
const MAX_LINGERING = 256;
const SHORT_LINGER_MS = 250;

export interface HookQueueTable {
  readonly world: Pick<World, 'nowMs' | 'monotonicMs' | 'random'>;
  /** Hook queues in memory by the id of their hook. */
  readonly hookQueues: Map<number, HookQueue>;
  /** Hooks whose queues were removed from memory since the last scan began. */
  readonly forgotten: Set<number>;
  readonly index: HookQueueIndex;
  readonly room: OwnerRoom;
  /** How many hook queues each owner has in memory. */
  readonly countByOwner: Map<string, number>;
  /** When a due hook queue of the owner was last refused for lack of room; monotonic. */
  readonly refusedAtMs: Map<string, number>;
  readonly origins: OriginBreakers;
  readonly scheduler: Scheduler<Job>;
  /** How many deliveries are being sent, or were sent and have no committed result yet. */
  uncommitted: number;
}

export function createHookQueueTable(world: HookQueueTable['world'], room = OWNER_ROOM): HookQueueTable {
  const hookQueues = new Map<number, HookQueue>();
  const origins = createOriginBreakers();
  const scheduler = createScheduler<Job>({
    caps: CAPS,
    limitsOfOrigin: (origin) => origins.limits(origin, world.nowMs()),
    allowedOfHook: (hookId) => allowedAttempts(hookQueues.get(hookId)?.breaker ?? CLOSED_BREAKER, world.nowMs()),
  });
  const index = { toRefill: new Set<HookQueue>(), idle: new Set<HookQueue>() };
  const [countByOwner, refusedAtMs] = [new Map<string, number>(), new Map<string, number>()];
  const forgotten = new Set<number>();
  return { world, hookQueues, forgotten, index, room, countByOwner, refusedAtMs, origins, scheduler, uncommitted: 0 };
}

export function takeMoment({ world }: HookQueueTable): BreakerMoment {
  return { nowMs: world.nowMs(), random: world.random() };
}

/** Hook queues for which `test` is true. */
export function listHookQueues({ hookQueues }: HookQueueTable, test: (hookQueue: HookQueue) => boolean): HookQueue[] {
  return listSome(hookQueues.values(), test);
}

function listSome(
  hookQueues: Iterable<HookQueue>,
  test: (hookQueue: HookQueue) => boolean,
  limit = Number.POSITIVE_INFINITY,
): HookQueue[] {
  const found: HookQueue[] = [];
  for (const hookQueue of hookQueues) {
    if (found.length >= limit) break;
    if (test(hookQueue)) found.push(hookQueue);
  }
  return found;
}

/** Whether the row has changed since it was read into memory, or is not in memory and has room there. */
export function isNews(table: HookQueueTable, { hook_id, owner_id, version }: DueHookQueue): boolean {
  const found = table.hookQueues.get(hook_id);
  return found === undefined ? hasRoom(table, owner_id) : found.version < version;
}

/** Whether one more hook queue of the owner may be in memory. */
export function hasRoom({ countByOwner, room }: HookQueueTable, ownerId: string): boolean {
  return (countByOwner.get(ownerId) ?? 0) < room.maxOfOwner;
}

/**
 * Finds or creates the hook queue of a due row. Undefined while the one in memory drains, and while its owner has too many. One that
 * has another origin or is of an earlier lease begins to drain.
 */
export function ensureHookQueue(table: HookQueueTable, row: DueHookQueue): HookQueue | undefined {
  const { hookQueues, world } = table;
  const known = hookQueues.get(row.hook_id);
  if (known !== undefined && (known.origin !== row.origin || known.epoch !== row.epoch)) drain(table, known);
  const found = hookQueues.get(row.hook_id);
  if (found === undefined || hasDrained(found)) {
    if (found !== undefined) forget(table, found);
    if (hasRoom(table, row.owner_id)) return remember(table, row);
    table.refusedAtMs.set(row.owner_id, world.monotonicMs());
    return undefined;
  }
  if (found.state === 'draining') return undefined;
  if (row.generation > found.generation) {
    renewHealth(found, row);
    table.scheduler.resume(found.origin, found.hookId);
  }
  recordVersion(found, row.version, world.monotonicMs());
  return found;
}

/** This process has committed an enqueue, which gave the row this version, and its deliveries are in memory or will be read. */
export function followOwnVersion({ hookQueues, world }: HookQueueTable, hookId: number, version: number): void {
  const found = hookQueues.get(hookId);
  if (found !== undefined) followVersion(found, version, world.monotonicMs());
}

/** Records that a delivery was enqueued to the hook. False if its hook queue is not in memory. */
export function recordEnqueue({ hookQueues }: HookQueueTable, hookId: number): boolean {
  const found = hookQueues.get(hookId);
  if (found === undefined) return false;
  countEnqueue(found);
  return true;
}

/** Up to `limit` hook queues that need more deliveries in memory. One with enough is listed again after a delivery is picked. */
export function listToRefill(table: HookQueueTable, limit: number): HookQueue[] {
  const { toRefill } = table.index;
  const needsMore = (one: HookQueue): boolean => {
    const isNeeded = listLanesToRefill(table, one).length > 0;
    if (!isNeeded) toRefill.delete(one);
    return isNeeded;
  };
  return listSome(toRefill, needsMore, limit);
}

/** The lanes of the hook queue that may have more due deliveries, and of which few wait in memory. */
export function listLanesToRefill({ scheduler }: HookQueueTable, { hookId, lanesToRead }: HookQueue): Lane[] {
  return [...lanesToRead].filter((lane) => scheduler.countWaiting(hookId, lane) < REFILL_BELOW);
}

/** Whether a dispatch cycle may find more to send now that an attempt of this hook has ended: of this hook or of others that wait. */
export function needsCycle({ hookQueues, scheduler }: HookQueueTable, hookId: number): boolean {
  return scheduler.waiting > 0 || hookQueues.get(hookId)?.state === 'loading';
}

/** Queues a delivery in memory, unless it is there already. */
export function admit({ scheduler, world }: HookQueueTable, hookQueue: HookQueue, row: WaitingRow): void {
  if (!addDelivery(hookQueue, row.id, world.monotonicMs())) return;
  const { hookId, origin, ownerId } = hookQueue;
  scheduler.add({ id: row.id, hookId, origin, ownerId, lane: toLane(row.lane), bodyBytes: row.body_bytes });
}

/** The deliveries whose turn it is. */
export function pickJobs(table: HookQueueTable): Job[] {
  const jobs: Job[] = [];
  for (let job = pickJob(table); job !== undefined; job = pickJob(table)) jobs.push(job);
  return jobs;
}

/** Takes the next delivery, which counts as uncommitted from now on. */
export function pickJob(table: HookQueueTable): Job | undefined {
  if (table.uncommitted >= CAPS.worker) return undefined;
  const job = table.scheduler.next();
  if (job === undefined) return undefined;
  table.uncommitted += 1;
  beginAttempt(table, job);
  return job;
}

/** Records that an attempt begins. An open breaker whose pause is over counts the attempt as its probe. */
function beginAttempt(table: HookQueueTable, { hookId }: Pick<Job, 'hookId'>): void {
  const hookQueue = table.hookQueues.get(hookId);
  if (hookQueue === undefined) return;
  const moment = takeMoment(table);
  updateIndex(hookQueue);
  advanceHook(hookQueue, { kind: 'begin' }, moment);
  table.origins.record(hookQueue.origin, { kind: 'begin' }, moment);
}

/** Undoes the pick of a job that was not sent. */
export function putBack(table: HookQueueTable, job: Job): void {
  table.uncommitted -= 1;
  table.scheduler.finish(job);
  const hookQueue = table.hookQueues.get(job.hookId);
  if (hookQueue === undefined) return;
  dropDelivery(hookQueue, job.id);
  forgetWhenDrained(table, hookQueue);
}

/** Stops loading deliveries, and drops those that wait in memory; they are still pending in their rows. */
export function drain(table: HookQueueTable, hookQueue: HookQueue): void {
  startDraining(hookQueue);
  for (const job of table.scheduler.drop(hookQueue.hookId)) dropDelivery(hookQueue, job.id);
  forgetWhenDrained(table, hookQueue);
}

function forgetWhenDrained(table: HookQueueTable, hookQueue: HookQueue): void {
  if (hasDrained(hookQueue)) forget(table, hookQueue);
}

function remember(table: HookQueueTable, row: DueHookQueue): HookQueue {
  const hookQueue = createHookQueue(row, table.world, table.index);
  table.hookQueues.set(hookQueue.hookId, hookQueue);
  countOfOwner(table, hookQueue.ownerId, 1);
  return hookQueue;
}

function forget(table: HookQueueTable, hookQueue: HookQueue): void {
  if (table.hookQueues.get(hookQueue.hookId) !== hookQueue) return;
  table.hookQueues.delete(hookQueue.hookId);
  table.forgotten.add(hookQueue.hookId);
  countOfOwner(table, hookQueue.ownerId, -1);
  leaveIndex(hookQueue);
}

function countOfOwner({ countByOwner, refusedAtMs }: HookQueueTable, ownerId: string, by: 1 | -1): void {
  const count = (countByOwner.get(ownerId) ?? 0) + by;
  countByOwner.set(ownerId, count);
  if (count > 0) return;
  countByOwner.delete(ownerId);
  refusedAtMs.delete(ownerId);
}

/** The hook queues that may sleep once `stored` is committed: no other delivery is in memory, and no more is due. */
export function listSleeps(table: HookQueueTable, stored: readonly AttemptResult[]): Sleep[] {
  return listIdle(table, stored).map(({ hookId, version, shard, epoch }) => ({ hookId, version, shard, epoch }));
}

/** Whether a hook queue may sleep now. */
export function hasSleep(table: HookQueueTable): boolean {
  return listIdle(table, [], 1).length > 0;
}

function listIdle(table: HookQueueTable, stored: readonly AttemptResult[], limit?: number): HookQueue[] {
  const storedIds = new Set(stored.map((one) => one.deliveryId));
  const lingerMs = table.hookQueues.size > MAX_LINGERING ? SHORT_LINGER_MS : LINGER_MS;
  const lastFoundBeforeMs = table.world.monotonicMs() - lingerMs;
  const isIdle = (one: HookQueue) =>
    one.state === 'loaded' && one.lastFoundMs <= lastFoundBeforeMs && isWithin(one.deliveryIds, storedIds);
  return listSome(listSleepy(table, stored), isIdle, limit);
}

/** Hook queues of the stored results, whose last delivery may be among them, and hook queues without a delivery in memory. */
function* listSleepy({ hookQueues, index }: HookQueueTable, stored: readonly AttemptResult[]): Iterable<HookQueue> {
  const ofStored = new Set(stored.flatMap(({ hookId }) => hookQueues.get(hookId) ?? []));
  yield* ofStored;
  for (const hookQueue of index.idle) if (!ofStored.has(hookQueue)) yield hookQueue;
}

function isWithin(some: ReadonlySet<number>, all: ReadonlySet<number>): boolean {
  if (some.size > all.size) return false;
  for (const id of some) if (!all.has(id)) return false;
  return true;
}

type StoredAttempt = Pick<AttemptResult, 'hookId' | 'deliveryId' | 'epoch'>;

/** Removes deliveries from memory after their results were stored, and hook queues after their sleep was stored. */
export function markStored(table: HookQueueTable, stored: readonly StoredAttempt[], sleeps: readonly Sleep[]): void {
  for (const { hookId, deliveryId, epoch } of stored) {
    const hookQueue = table.hookQueues.get(hookId);
    if (hookQueue !== undefined) countStored(hookQueue);
    // A manual attempt does not count as uncommitted. Its delivery may be in memory too, for a scheduled attempt.
    if (epoch === OUTSIDE_SHARDS.epoch) continue;
    table.uncommitted -= 1;
    if (hookQueue === undefined) continue;
    forgetDelivery(hookQueue, deliveryId);
    forgetWhenDrained(table, hookQueue);
  }
  for (const { hookId } of sleeps) {
    const hookQueue = table.hookQueues.get(hookId);
    // After an enqueue during the commit the state is `loading`. The hook queue then stays, since it is read without a scan.
    if (hookQueue?.state === 'loaded' && hookQueue.deliveryIds.size === 0) forget(table, hookQueue);
  }
}
