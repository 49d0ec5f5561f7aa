/**
 * Hands a delivery that was just committed to the worker of this process without a read. All other due first attempts of its hook
 * must be in memory. A read takes a large part of the processor time of a delivery, and on PostgreSQL a round trip.
 *
 * The contents are kept for the next pick only. A delivery that waits longer is read before its attempt, with its hook as it is then.
 */

import type { HookQueue } from '../hook-queues/hook-queue.ts';
import {
  admit,
  followOwnVersion,
  type HookQueueTable,
  REFILL_BELOW,
  recordEnqueue,
} from '../hook-queues/hook-queue-table.ts';
import type { CommittedDelivery } from '../queue/committed-delivery.ts';
import type { ContentRow } from '../queue/delivery-queue-store.ts';
import { LANE_NUMBERS } from '../queue/delivery-state.ts';
import type { EnqueueVersions } from '../queue/delivery-store.ts';

/** A delivery is read again if its hook was read longer ago than this, since the hook may have changed. */
export const MAX_AGE_MS = 250;

export interface CommittedBuffer {
  /** Takes the deliveries of one commit. Returns those that have to be read instead. */
  add(committed: readonly CommittedDelivery[], versions: EnqueueVersions): CommittedDelivery[];
  /** Takes the contents of deliveries that were added since the last call. */
  takeContents(): readonly ContentRow[];
}

export function createCommittedBuffer(table: HookQueueTable): CommittedBuffer {
  let contents: ContentRow[] = [];
  /** Once a delivery has to be read, later ones of the same hook queue have to be read too, so that their order is kept. */
  const tryToAdmit = ({ hookId, content }: CommittedDelivery): boolean => {
    const hookQueue = table.hookQueues.get(hookId);
    if (hookQueue === undefined || content === undefined || !mayAdmit(table, hookQueue, content)) {
      recordEnqueue(table, hookId);
      return false;
    }
    const { id, body } = content;
    admit(table, hookQueue, { hook_id: hookId, id, lane: LANE_NUMBERS.first, body_bytes: body.byteLength });
    contents.push(content);
    return true;
  };
  return {
    add: (committed, versions) => {
      const toRead = committed.filter((one) => !tryToAdmit(one));
      for (const [hookId, version] of versions) followOwnVersion(table, hookId, version);
      return toRead;
    },
    takeContents: () => {
      const taken = contents;
      contents = [];
      return taken;
    },
  };
}

/**
 * Whether the delivery can be taken without a read. This process may learn of its commit late: an earlier read, or another worker that
 * owned the shard before, may have found the delivery already, and its result may be stored by now.
 */
function mayAdmit({ world, scheduler }: HookQueueTable, hookQueue: HookQueue, content: ContentRow): boolean {
  return (
    hookQueue.isComplete &&
    // The hook may have been enabled since it was read.
    content.disabled_at_ms === null &&
    content.created_at_ms > hookQueue.createdAtMs &&
    content.id > hookQueue.lastReadId &&
    content.created_at_ms > world.nowMs() - MAX_AGE_MS &&
    scheduler.countWaiting(hookQueue.hookId, 'first') < REFILL_BELOW
  );
}
