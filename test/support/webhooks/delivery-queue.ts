import type { Store } from '../../../src/database/store.ts';
import type { AttemptResult } from '../../../src/webhooks/delivery/queue/attempt-result-store.ts';
import { readDueHookQueues } from '../../../src/webhooks/delivery/queue/delivery-queue-store.ts';
import { enqueueStatements, shardOf } from '../../../src/webhooks/delivery/queue/delivery-store.ts';

export const ORIGIN = 'http://127.0.0.1:9';
export const OWNER = 'worker-1';
export const NOW = 1_000_000;

export async function enqueue(store: Store, hookId: number, nowMs = NOW, dueAtMs?: number): Promise<number> {
  const [id = 0] = await store.makeIds(1);
  const base = { id, hookId, eventId: 1, uuid: `uuid-${id}`, body: Buffer.from('{}'), eventKind: 'push' as const };
  const due = dueAtMs === undefined ? {} : { dueAtMs };
  await store.writeAll(enqueueStatements([{ ...base, origin: ORIGIN, ownerId: 'owner', nowMs, ...due }]));
  return id;
}

let lastAttemptId = 0;

export function result(hookId: number, deliveryId: number, overrides: Partial<AttemptResult> = {}): AttemptResult {
  lastAttemptId += 1;
  const attempt = { id: lastAttemptId, startedAtMs: NOW, outcome: 'accepted', status: 200, reason: null };
  return {
    deliveryId,
    hookId,
    foundDueAtMs: NOW,
    attemptsBefore: 0,
    shard: shardOf(ORIGIN),
    epoch: 1,
    generation: 0,
    nextState: 'succeeded',
    nextLane: 0,
    dueAtMs: NOW,
    attempt: { ...attempt, remoteAddress: '127.0.0.1', detail: '{}', responseBody: Buffer.from('ok') },
    ...overrides,
  };
}

export async function readDue(store: Store, nowMs = NOW, owner = OWNER) {
  return await readDueHookQueues(store, { workerId: owner, nowMs, afterMs: 0, afterHookId: 0, limit: 200 });
}
