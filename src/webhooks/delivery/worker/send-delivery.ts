/** Sends one picked delivery, unless its hook or its shard has changed since: the last stage of a dispatch cycle. */
import type { World } from '../../../world.ts';
import type { HookQueue } from '../hook-queues/hook-queue.ts';
import { forgetHealth } from '../hook-queues/hook-queue-health.ts';
import { drain, type HookQueueTable, putBack } from '../hook-queues/hook-queue-table.ts';
import { makeRoom, recordConnection, recordFormerOutcome, recordOutcome } from '../hook-queues/outcome-effects.ts';
import type { ContentRow } from '../queue/delivery-queue-store.ts';
import type { HookQueueChange } from '../queue/hook-queue-change-store.ts';
import type { Job } from '../schedule/turn-tree.ts';
import { ATTEMPT_DEADLINE_MS } from '../send/send.ts';
import { type MakeAttempt, planAttemptResult } from './attempt.ts';
import type { Results } from './result-batch.ts';
import type { ResultWriter } from './result-writer.ts';
import type { ShardLeases } from './shard-leases.ts';
import type { WakeSignal } from './wake-signal.ts';

export interface SendDependencies {
  readonly world: World;
  readonly leases: ShardLeases;
  readonly table: HookQueueTable;
  readonly writer: Pick<ResultWriter, 'add'>;
  readonly makeAttempt: MakeAttempt;
  /** Wakes the loop that runs the cycles. */
  readonly signal: WakeSignal;
}

export interface PickedDelivery {
  readonly job: Job;
  /** Undefined if the delivery is no longer pending, or its content is outdated. */
  readonly content: ContentRow | undefined;
  /** The row of the attempt in the log. */
  readonly attemptId: number;
}

/** Makes one attempt, unless something has changed since the delivery was picked. */
export async function sendDelivery(dependencies: SendDependencies, picked: PickedDelivery): Promise<Results> {
  const { table, leases, world } = dependencies;
  const { job, content } = picked;
  const hookQueue = table.hookQueues.get(job.hookId);
  const isOwned = hookQueue !== undefined && leases.epochOf(hookQueue.shard) === hookQueue.epoch;
  // A delivery with a later due time is reserved by a manual attempt.
  if (hookQueue === undefined || content === undefined || !isOwned || content.due_at_ms > world.nowMs()) {
    putBack(table, job);
    // The shard belongs to another worker, or did in between. Without the drain the delivery would be read and picked in every cycle.
    // Leases that have merely lapsed are renewed soon, and until then the hook queue stays.
    if (hookQueue !== undefined && !isOwned && leases.areHeld()) drain(table, hookQueue);
    return { changes: [] };
  }
  const obstacle = findObstacle(content, hookQueue);
  if (obstacle === undefined) return await attemptDelivery(dependencies, { ...picked, hookQueue, content });
  putBack(table, job);
  drain(table, hookQueue);
  return { changes: [obstacle] };
}

interface SendableDelivery extends PickedDelivery {
  readonly content: ContentRow;
  readonly hookQueue: HookQueue;
}

async function attemptDelivery(dependencies: SendDependencies, sendable: SendableDelivery): Promise<Results> {
  const { table, writer, signal, makeAttempt, world } = dependencies;
  const { job, content, hookQueue, attemptId } = sendable;
  if (content.generation > hookQueue.generation) {
    forgetHealth(hookQueue, content.generation);
    table.scheduler.resume(hookQueue.origin, hookQueue.hookId);
    signal.wake();
  }
  const onConnected = (): void => {
    writer.add({ changes: recordConnection(table, hookQueue) });
    signal.wake();
  };
  const { ownerId } = hookQueue;
  const attempt = await makeAttempt(content, { deadlineMs: ATTEMPT_DEADLINE_MS, ownerId, onConnected });
  const { report } = attempt;
  table.scheduler.finish(job);
  const result = planAttemptResult(attempt, { shard: hookQueue.shard, epoch: hookQueue.epoch, attemptId }, world);
  const record = content.generation === hookQueue.generation ? recordOutcome : recordFormerOutcome;
  const changes = [...record(table, hookQueue, report.outcome), ...makeRoom(table, hookQueue)];
  table.scheduler.resume(hookQueue.origin, hookQueue.hookId);
  return { attempt: { result, report, url: content.url }, changes };
}

/** The change of the hook since its hook queue was read that forbids sending, if there is one. */
function findObstacle(content: ContentRow, hookQueue: HookQueue): HookQueueChange | undefined {
  const { hookId, version, shard, epoch } = hookQueue;
  const origin = findOtherOrigin(content, hookQueue);
  if (origin !== undefined) return { kind: 'move', hookId, origin, shard, epoch };
  if (content.url === null) return { kind: 'cancel', hookId };
  return content.disabled_at_ms === null ? undefined : { kind: 'hold', hookId, version };
}

/** The new origin, if the URL has changed to another one: the outcome of an attempt would count for the wrong origin. */
function findOtherOrigin({ url }: ContentRow, hookQueue: HookQueue): string | undefined {
  // A slash ends the authority, so this URL has that origin, and need not be parsed.
  if (url === null || url.startsWith(`${hookQueue.origin}/`) || !URL.canParse(url)) return undefined;
  const { origin } = new URL(url);
  return origin === hookQueue.origin ? undefined : origin;
}
