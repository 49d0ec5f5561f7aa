/** Reads waiting deliveries into their hook queues, a limited number at once: the second stage of a dispatch cycle. */
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import { type HookQueue, recordRead } from '../hook-queues/hook-queue.ts';
import { admit, type HookQueueTable, listLanesToRefill, listToRefill } from '../hook-queues/hook-queue-table.ts';
import {
  type ContentRow,
  readSmallWaiting,
  readWaiting,
  SMALL_READ,
  type WaitingRow,
} from '../queue/delivery-queue-store.ts';
import { toLane } from '../queue/delivery-state.ts';
import type { Lane } from '../schedule/turn-tree.ts';
import type { WakeSignal } from './wake-signal.ts';

/** How many deliveries one read returns for each lane of a hook queue with more than `SMALL_READ` due deliveries. */
const READ_LIMIT = 64;
/** How many hook queues are read in one cycle. */
const MAX_READS = 256;
/** How many hook queues are read with contents: 32 × 2 lanes × 8 deliveries × 16 KiB are 8 MiB. */
const MAX_CONTENT_READS = 32;

export interface AdmitDependencies {
  readonly store: Store;
  readonly world: World;
  readonly table: HookQueueTable;
  /** Wakes the loop that runs the cycles. */
  readonly signal: WakeSignal;
}

/**
 * Reads waiting deliveries into their hook queues. Returns the contents that were read with them, which are valid for the picks of this
 * cycle only: a later pick reads the hook as it is then. Contents of a hook queue with a result that was stored during the read are left
 * out, since the read may have found that delivery pending.
 */
export async function admitWaiting({ store, world, table, signal }: AdmitDependencies): Promise<readonly ContentRow[]> {
  const hookQueues = listToRefill(table, MAX_READS);
  const reads = hookQueues.map((hookQueue) => {
    const { enqueues, stored } = hookQueue;
    return { hookQueue, enqueues, stored, limits: findLimits(table, hookQueue) };
  });
  const nowMs = world.nowMs();
  const few = reads.filter(isSmallRead).slice(0, MAX_CONTENT_READS);
  const many = reads.filter((read) => !few.includes(read));
  const [waiting, found] = await Promise.all([
    many.length === 0 ? [] : readWaiting(store, many.map(toRequest), nowMs),
    few.length === 0
      ? NOTHING_FOUND
      : readSmallWaiting(
          store,
          few.map(({ hookQueue }) => hookQueue.hookId),
          nowMs,
        ),
  ]);
  const rowsByHook = Map.groupBy([...waiting, ...found.rows], (row) => row.hook_id);
  // There may be more to read, and perhaps nothing else starts a cycle soon.
  if (hookQueues.length === MAX_READS) signal.wake();
  for (const read of reads) takeRead(table, read, rowsByHook.get(read.hookQueue.hookId) ?? []);
  const changed = new Set(
    reads.filter(({ hookQueue, stored }) => hookQueue.stored !== stored).map(({ hookQueue }) => hookQueue.hookId),
  );
  return found.contents.filter((content) => !changed.has(content.hook_id));
}

const NOTHING_FOUND = { rows: [], contents: [] } as const;

interface HookQueueRead {
  readonly hookQueue: HookQueue;
  /** `enqueues` and `stored` of the hook queue when the read began. */
  readonly enqueues: number;
  readonly stored: number;
  /** 0 for a lane that is not read. */
  readonly limits: Readonly<Record<Lane, number>>;
}

const SMALL_LIMITS: HookQueueRead['limits'] = { first: SMALL_READ, retry: SMALL_READ };

/** The limit includes the deliveries in memory: they are read again, since their rows are still pending. */
function findLimits(table: HookQueueTable, hookQueue: HookQueue): HookQueueRead['limits'] {
  const { deliveryIds, hasMoreDue } = hookQueue;
  if (!hasMoreDue.first && !hasMoreDue.retry && deliveryIds.size <= SMALL_READ / 2) return SMALL_LIMITS;
  const lanes = listLanesToRefill(table, hookQueue);
  const findLimit = (lane: Lane) => (lanes.includes(lane) ? READ_LIMIT + deliveryIds.size : 0);
  return { first: findLimit('first'), retry: findLimit('retry') };
}

function isSmallRead({ limits }: HookQueueRead): boolean {
  return limits === SMALL_LIMITS;
}

function toRequest({ hookQueue, limits }: HookQueueRead) {
  return { hookId: hookQueue.hookId, limits };
}

function takeRead(
  table: HookQueueTable,
  { hookQueue, enqueues, limits }: HookQueueRead,
  found: readonly WaitingRow[],
): void {
  const retries = found.filter((row) => toLane(row.lane) === 'retry').length;
  const lastId = found.reduce((last, { id }) => Math.max(last, id), 0);
  const hasMoreDue = {
    ...(limits.first > 0 && { first: found.length - retries >= limits.first }),
    ...(limits.retry > 0 && { retry: retries >= limits.retry }),
  };
  recordRead(hookQueue, { hasMoreDue, enqueues, lastId }, table.world.monotonicMs());
  for (const row of found) admit(table, hookQueue, row);
}
