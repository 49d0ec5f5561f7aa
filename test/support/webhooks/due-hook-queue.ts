import type { DueHookQueue } from '../../../src/webhooks/delivery/queue/delivery-queue-store.ts';

/** The row of a hook queue that is due: a healthy hook without a pause. */
export function makeDueRow(more: Partial<DueHookQueue> & Pick<DueHookQueue, 'hook_id'>): DueHookQueue {
  return {
    owner_id: 'owner',
    origin: 'https://example.com',
    shard: 3,
    epoch: 1,
    next_at_ms: 0,
    version: 1,
    generation: 0,
    parked: 0,
    fails: 0,
    failing_since_ms: null,
    openings: 0,
    paused_since_ms: null,
    pause_reason: null,
    ...more,
  };
}
