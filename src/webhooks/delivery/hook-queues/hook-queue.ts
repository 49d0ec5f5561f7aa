/**
 * Keeps the queue of one hook in memory: deliveries that wait or are being sent, health, breaker. Its row is in the table
 * `endpoint_queue`, whose columns docs/how-it-works/delivery.md explains. Only the functions of this file change it, and those of
 * `hook-queue-health.ts` its health and breaker.
 *
 * | event                                                             | state before    | after     | what else changes |
 * |-------------------------------------------------------------------|-----------------|-----------|-------------------|
 * | a scan finds its row due: `createHookQueue`                       | not in memory   | loading   | `version` is that of the row |
 * | a later scan finds the row in a later version: `recordVersion`    | loading, loaded | loading   | `version` is that of the row |
 * | a scan finds the row in a later generation: `renewHealth`         | loading, loaded | unchanged | `health` and `breaker` are those of the row |
 * | an attempt finds the queue in a later generation: `forgetHealth`  | loading, loaded | unchanged | no failures, `breaker` is closed |
 * | an enqueue by this process raised the version: `followVersion`    | any             | unchanged | `version` is that of the row |
 * | a scan finds the row a second after `readAtMs` of a lane, and an  |                 |           | |
 * | id is in memory or `followedAtMs` is later: `recordVersion`       | loading, loaded | loading   | that lane has to be read |
 * | this process enqueued a delivery: `countEnqueue`                  | loading, loaded | loading   | `enqueues` + 1, `isComplete` is false, first attempts have to be read |
 * | the same, and the delivery came with it: `addDelivery`            | loading, loaded | unchanged | its id is added, `lastFoundMs` is now |
 * | a read of the lanes found fewer than its limit: `recordRead`      | loading         | loaded    | `hasMoreDue` is false, `isComplete` is true |
 * | the same, and `enqueues` rose during the read                     | loading         | loading   | `hasMoreDue` is false |
 * | a read of a lane found as many as its limit: `recordRead`         | loading         | loading   | `hasMoreDue` of the lane is true |
 * | a read of one lane, and the other has to be read                  | loading         | loading   | `isComplete` is that of first attempts |
 * | a read found a delivery: `addDelivery`                            | loading, loaded | unchanged | its id is added, `lastFoundMs` is now |
 * | the delivery was picked and not sent: `dropDelivery`              | loading, loaded | loading   | its id is removed, `isComplete` is false |
 * | the result of any attempt is stored: `countStored`                | any             | unchanged | `stored` + 1 |
 * | that attempt was scheduled, not manual: `forgetDelivery`          | any             | unchanged | its id is removed |
 * | paused, held, canceled, moved, or the shard lost: `startDraining` | any             | draining  | waiting deliveries are dropped |
 * | an attempt ended, and others of its owner wait for room: the same | loading         | draining  | waiting deliveries are dropped |
 * | the same, and another delivery waits in memory                    | loaded          | draining  | waiting deliveries are dropped |
 * | no id is left                                                     | draining        | forgotten | |
 * | no id is left, and nothing is due now in its row                  | loaded          | forgotten | |
 *
 * The two lanes are read separately, so that a new delivery does not wait until many retries in memory are sent. Where the table names
 * no lane, both have to be read. Every read sets `readAtMs` of the lanes that it covers. A retry becomes due without a change of the
 * row, so the lane of retries is read again once a second, even while each read of the other lane finds more.
 *
 * Forgotten: the hook queue is no longer in memory. Each of these rules closes a race:
 * - An enqueue during a read may be missed by the read: a read counts as complete only if `enqueues` is still what it was.
 * - A result that is stored during a read: the read may have found that delivery pending. If `stored` rose, the contents from this
 *   read are not used, and are read again when the delivery is picked.
 * - An enqueue by another process while the row is put to sleep: the statement changes the row only in this `version`.
 * - An enqueue by another process between two of this one: `version` follows an enqueue of this process only if nothing else has
 *   raised it since.
 * - A person enables the hook or changes its URL, or a manual attempt is accepted, while attempts are under way: their outcomes count
 *   only in the `generation` in which they began.
 * - A pause that is stored during a scan: the scan may have read the row before. A scan takes no row of a hook queue that was
 *   forgotten since the scan began (`forgotten` in `hook-queue-table.ts`).
 * - Two reads that find the same delivery: its id is in `deliveryIds` already.
 * - A commit that is reported only after a read found its delivery and the result was stored: a delivery is taken without a read only
 *   if its id is above `lastReadId` (`committed-buffer.ts`), which rises with every read.
 */
import type { World } from '../../../world.ts';
import type { DueHookQueue } from '../queue/delivery-queue-store.ts';
import type { Lane } from '../schedule/turn-tree.ts';
import { type HookQueueHealth, readHealth } from './hook-queue-health.ts';

/**
 * `loading`: some due deliveries may not be in memory. `loaded`: all due deliveries are. `draining`: nothing more is loaded or picked.
 */
export type HookQueueState = 'loading' | 'loaded' | 'draining';

export interface HookQueue extends HookQueueHealth {
  readonly index: HookQueueIndex;
  readonly hookId: number;
  readonly ownerId: string;
  readonly origin: string;
  readonly shard: number;
  /** The epoch of the shard's lease when the row was read. Changes are stored only under this lease. */
  readonly epoch: number;
  readonly state: HookQueueState;
  /** The version of the row when it was last read, or when this process last raised it. */
  readonly version: number;
  /** Monotonic time of the last enqueue by this process that raised `version`. */
  readonly followedAtMs: number;
  /** Enqueues by this process while the hook queue is in memory. */
  readonly enqueues: number;
  /** Results that were stored while the hook queue is in memory, those of manual attempts too. */
  readonly stored: number;
  /** When a delivery was last added; monotonic. */
  readonly lastFoundMs: number;
  /** Its deliveries in memory: those that wait, are being sent, or whose results are not committed. */
  readonly deliveryIds: ReadonlySet<number>;
  /** When the last read of the lane ended; before the first read, when the hook queue was created. Monotonic. */
  readonly readAtMs: Readonly<Record<Lane, number>>;
  /** The last read of the lane found as many as its limit, so there are more that are due. */
  readonly hasMoreDue: Readonly<Record<Lane, boolean>>;
  /** Lanes with due deliveries that may not be in memory; empty unless the state is `loading`. */
  readonly lanesToRead: ReadonlySet<Lane>;
  /** When this entry was created; milliseconds since the epoch. */
  readonly createdAtMs: number;
  /** The same moment in monotonic time. */
  readonly enteredAtMs: number;
  /** The end of the pause in the row, while the hook queue drains because of that pause; else undefined. */
  readonly pausedUntilMs: number | undefined;
  /** Whether memory has all first attempts that were due at the last read of their lane or that this process enqueued since. */
  readonly isComplete: boolean;
  /** The largest id of a delivery that a read has found. */
  readonly lastReadId: number;
}

/** Lists hook queues that each cycle needs, so that it does not go through all in memory: one owner may have thousands. */
export interface HookQueueIndex {
  /** Those that are loading, except those with enough deliveries in memory; the last that was read is at the end. */
  readonly toRefill: Set<HookQueue>;
  /** Those that are loaded and have no delivery in memory. */
  readonly idle: Set<HookQueue>;
}

type WritableHookQueue = { -readonly [Field in keyof HookQueue]: HookQueue[Field] } & {
  deliveryIds: Set<number>;
  lanesToRead: Set<Lane>;
};

const LANES: readonly Lane[] = ['first', 'retry'];

/** Hook queues are read-only outside this file. */
function toWritable(hookQueue: HookQueue): WritableHookQueue {
  return hookQueue as WritableHookQueue;
}

export function createHookQueue(
  row: DueHookQueue,
  world: Pick<World, 'nowMs' | 'monotonicMs'>,
  index: HookQueueIndex,
): HookQueue {
  const monotonicMs = world.monotonicMs();
  const hookQueue: WritableHookQueue = {
    index,
    hookId: row.hook_id,
    ownerId: row.owner_id,
    origin: row.origin,
    shard: row.shard,
    epoch: row.epoch,
    state: 'loading',
    version: row.version,
    followedAtMs: Number.NEGATIVE_INFINITY,
    enqueues: 0,
    stored: 0,
    lastFoundMs: Number.NEGATIVE_INFINITY,
    deliveryIds: new Set(),
    readAtMs: { first: monotonicMs, retry: monotonicMs },
    hasMoreDue: { first: false, retry: false },
    lanesToRead: new Set(LANES),
    createdAtMs: world.nowMs(),
    enteredAtMs: monotonicMs,
    pausedUntilMs: undefined,
    isComplete: false,
    lastReadId: 0,
    ...readHealth(row),
  };
  updateIndex(hookQueue);
  return hookQueue;
}

/** Updates the index after the hook queue has changed or a delivery was picked. */
export function updateIndex(hookQueue: HookQueue): void {
  const { index, state, deliveryIds } = hookQueue;
  if (state === 'loading') index.toRefill.add(hookQueue);
  else index.toRefill.delete(hookQueue);
  if (state === 'loaded' && deliveryIds.size === 0) index.idle.add(hookQueue);
  else index.idle.delete(hookQueue);
}

/** Removes the hook queue from the index, when it leaves memory. */
export function leaveIndex(hookQueue: HookQueue): void {
  hookQueue.index.toRefill.delete(hookQueue);
  hookQueue.index.idle.delete(hookQueue);
}

/**
 * How often each lane of a hook queue that cannot sleep is read, since retries become due without a change of the row. It cannot sleep
 * while enqueues of this process keep it awake, or an attempt is under way. One that sleeps is found again when its next retry is due.
 */
const READ_AGAIN_MS = 1000;

/** Records that the row was read again. A later version means that something was enqueued or changed. */
export function recordVersion(hookQueue: HookQueue, version: number, monotonicMs: number): void {
  const isLater = version > hookQueue.version;
  const lanes = isLater ? LANES : LANES.filter((lane) => mayHaveMore(hookQueue, lane, monotonicMs));
  if (lanes.length === 0) return;
  toWritable(hookQueue).version = Math.max(version, hookQueue.version);
  load(hookQueue, lanes);
}

/** Whether a delivery of the lane may have become due since the last read, while the hook queue could not sleep. */
function mayHaveMore({ readAtMs, followedAtMs, deliveryIds }: HookQueue, lane: Lane, monotonicMs: number): boolean {
  if (monotonicMs - readAtMs[lane] < READ_AGAIN_MS) return false;
  return deliveryIds.size > 0 || followedAtMs > readAtMs[lane];
}

/**
 * Follows an enqueue of this process that gave the row this version. If the version rose by one only, nothing else was enqueued or
 * changed, and the next scan need not read the deliveries that are in memory.
 */
export function followVersion(hookQueue: HookQueue, version: number, monotonicMs: number): void {
  if (version !== hookQueue.version + 1) return;
  const writable = toWritable(hookQueue);
  writable.version = version;
  writable.followedAtMs = monotonicMs;
}

/** Records an enqueued delivery that is not in memory. */
export function countEnqueue(hookQueue: HookQueue): void {
  const writable = toWritable(hookQueue);
  writable.isComplete = false;
  writable.enqueues += 1;
  // Enqueued deliveries are first attempts.
  load(hookQueue, ['first']);
}

/** Requests a read of more deliveries of these lanes. */
function load(hookQueue: HookQueue, lanes: readonly Lane[] = LANES): void {
  if (hookQueue.state === 'draining') return;
  const writable = toWritable(hookQueue);
  writable.state = 'loading';
  for (const lane of lanes) writable.lanesToRead.add(lane);
  updateIndex(hookQueue);
}

/** A read of deliveries. */
export interface LaneRead {
  /** The lanes that were read, and whether it found as many as its limit. */
  readonly hasMoreDue: Readonly<Partial<Record<Lane, boolean>>>;
  /** The value of `enqueues` when the read began. */
  readonly enqueues: number;
  readonly lastId: number;
}

/** Records the end of a read of deliveries. */
export function recordRead(hookQueue: HookQueue, read: LaneRead, monotonicMs: number): void {
  if (hookQueue.state === 'draining') return;
  const writable = toWritable(hookQueue);
  writable.hasMoreDue = { ...hookQueue.hasMoreDue, ...read.hasMoreDue };
  writable.lastReadId = Math.max(hookQueue.lastReadId, read.lastId);
  const hasMissedNone = read.enqueues === hookQueue.enqueues;
  const readAtMs = { ...hookQueue.readAtMs };
  for (const lane of LANES) {
    if (read.hasMoreDue[lane] !== undefined) readAtMs[lane] = monotonicMs;
    if (read.hasMoreDue[lane] === true) writable.lanesToRead.add(lane);
    if (read.hasMoreDue[lane] === false && hasMissedNone) writable.lanesToRead.delete(lane);
  }
  if (read.hasMoreDue.first !== undefined) writable.isComplete = !hookQueue.lanesToRead.has('first');
  writable.readAtMs = readAtMs;
  writable.state = hookQueue.lanesToRead.size === 0 ? 'loaded' : 'loading';
  // Moves it to the end of the index, so that other hook queues are read before it.
  leaveIndex(hookQueue);
  updateIndex(hookQueue);
}

/** Takes a delivery into memory. False if it is there already or the hook queue drains. */
export function addDelivery(hookQueue: HookQueue, deliveryId: number, monotonicMs: number): boolean {
  if (hookQueue.state === 'draining' || hookQueue.deliveryIds.has(deliveryId)) return false;
  const writable = toWritable(hookQueue);
  writable.deliveryIds.add(deliveryId);
  writable.lastFoundMs = monotonicMs;
  updateIndex(hookQueue);
  return true;
}

/** Removes a delivery that was not sent, and is still pending in its row. */
export function dropDelivery(hookQueue: HookQueue, deliveryId: number): void {
  const writable = toWritable(hookQueue);
  writable.isComplete = false;
  writable.deliveryIds.delete(deliveryId);
  load(hookQueue);
}

/** Counts the stored result of an attempt. */
export function countStored(hookQueue: HookQueue): void {
  toWritable(hookQueue).stored += 1;
}

/** Removes a delivery from memory once the result of its scheduled attempt is stored. */
export function forgetDelivery(hookQueue: HookQueue, deliveryId: number): void {
  toWritable(hookQueue).deliveryIds.delete(deliveryId);
  updateIndex(hookQueue);
}

/** Stops loading: the hook queue is paused, held, canceled or moved, makes room, or its shard belongs to another worker. */
export function startDraining(hookQueue: HookQueue): void {
  const writable = toWritable(hookQueue);
  writable.isComplete = false;
  writable.state = 'draining';
  updateIndex(hookQueue);
}

/** Records the end of the pause that the row has. */
export function recordPause(hookQueue: HookQueue, untilMs: number): void {
  toWritable(hookQueue).pausedUntilMs = untilMs;
}

export function hasDrained({ state, deliveryIds }: HookQueue): boolean {
  return state === 'draining' && deliveryIds.size === 0;
}
