/** Declares a delivery that this process has just committed, with the data of its first attempt, so that the worker reads nothing. */
import type { TargetHook } from '../../hooks/target-hook-store.ts';
import { isLarge } from '../schedule/concurrency-limits.ts';
import type { ContentRow } from './delivery-queue-store.ts';
import { type NewDelivery, shardOf } from './delivery-store.ts';

export interface CommittedDelivery {
  readonly hookId: number;
  /** The shard of its origin when it was committed. */
  readonly shard: number;
  /**
   * The content as a read returns it. Undefined for a large body, which the worker reads before the attempt, and if the hook was read
   * without the generation of its queue.
   */
  readonly content: ContentRow | undefined;
}

/** The hook as it was read for the delivery. */
export function describeCommitted(
  { id, hookId, uuid, body, eventKind, origin, nowMs, dueAtMs = nowMs }: NewDelivery,
  { hook, encrypted, generation }: TargetHook,
): CommittedDelivery {
  const shard = shardOf(origin);
  if ('storedBytes' in body || isLarge(body.byteLength) || generation === undefined)
    return { hookId, shard, content: undefined };
  const content: ContentRow = {
    id,
    hook_id: hookId,
    attempts: 0,
    schedule_from: 0,
    due_at_ms: dueAtMs,
    created_at_ms: nowMs,
    event_kind: eventKind,
    uuid,
    body,
    url: hook.url,
    encryption_type: hook.encryptionType,
    profile: hook.profile,
    disabled_at_ms: hook.disabledAtMs,
    is_test: 0,
    generation,
    ...encrypted,
  };
  return { hookId, shard, content };
}
