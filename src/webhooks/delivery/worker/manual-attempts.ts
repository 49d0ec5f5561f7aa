/**
 * Makes attempts that a person requests (test, redelivery) at once, even if the hook is paused. Any process makes them, also for a
 * shard of another worker: one attempt does no harm, and shows whether the receiver works again. The result is stored like any other.
 * A success ends the pause. A failure neither begins nor lengthens a pause, unless the pause was over and the attempt was its probe.
 * A failure to connect counts for the origin like any other.
 */
import { createInFlight, type InFlight } from '../../../database/in-flight.ts';
import type { Store } from '../../../database/store.ts';
import { Failure, isFailure } from '../../../errors.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { World } from '../../../world.ts';
import type { HookQueueTable } from '../hook-queues/hook-queue-table.ts';
import { recordManualOutcome } from '../hook-queues/outcome-effects.ts';
import { type AttemptResult, OUTSIDE_SHARDS } from '../queue/attempt-result-store.ts';
import { type ContentRow, readContents } from '../queue/delivery-queue-store.ts';
import {
  endReservation,
  expireAtDisabled,
  reserveTest,
  restart,
  restartReserved,
} from '../queue/delivery-restart-store.ts';
import { ATTEMPT_DEADLINE_MS } from '../send/send.ts';
import type { SendReport } from '../send/send-report.ts';
import { type Attempt, type MakeAttempt, planAttemptResult } from './attempt.ts';
import type { DueScan } from './due-scan.ts';
import { createLimitedPlaces } from './limited-places.ts';
import type { ResultWriter } from './result-writer.ts';

/** The workers send the delivery if no result is stored this long after the deadline of its attempt. */
const GRACE_MS = 10_000;
/** With less time left than this, nothing is sent, since a timeout would count as a failure of the receiver. */
const LEAST_TIME_MS = 1000;
/** Limits of redeliveries at once, of one hook and of this process; further ones wait like any delivery. Tests: `management.ts`. */
const REDELIVERY_LIMITS = { ofOwner: 4, ofAll: 32 };

export interface ManualAttempts {
  /**
   * Makes the one attempt of a test's delivery, which was enqueued with a later due time. `deadlineMs` is in milliseconds since the
   * epoch. A disabled hook is tested too, so that its owner can see whether it works again. Undefined if the delivery was reserved
   * already, this process stops, or a slow database left no time; then the workers send it.
   */
  test(deliveryId: number, deadlineMs: number): Promise<SendReport | undefined>;
  /**
   * Restarts the schedule of a delivery with an attempt at once, and resolves when the restart is stored; undefined if there is no such
   * delivery. `attempt` resolves when the result of the attempt is stored. Throws `conflict` while an earlier request for the delivery is
   * under way, since each request is sent once.
   */
  redeliver(hookId: number, deliveryId: number): Promise<Redelivery | undefined>;
  /** Begins no more attempts, and resolves when none is under way, whether their results are stored or not. */
  stop(): Promise<void>;
}

export interface Redelivery {
  /** Undefined if nothing was sent: the hook is disabled, too many attempts are under way, no time was left, or this process stops. */
  readonly attempt: Promise<SendReport | undefined>;
}

export interface ManualAttemptsDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly table: HookQueueTable;
  readonly writer: Pick<ResultWriter, 'add' | 'flush'>;
  /** Wakes the workers for deliveries that are left to them. */
  readonly scan: Pick<DueScan, 'request'>;
  readonly makeAttempt: MakeAttempt;
}

export function createManualAttempts(dependencies: ManualAttemptsDependencies): ManualAttempts {
  const inFlight = createInFlight();
  const limit = createLimitedPlaces<number>(REDELIVERY_LIMITS);
  let isStopping = false;
  return {
    test: async (deliveryId, deadlineMs) => {
      const test = async () => (isStopping ? undefined : await testOnce(dependencies, deliveryId, deadlineMs));
      return await storeAttempt(dependencies, inFlight.track(test));
    },
    redeliver: async (hookId, deliveryId) => {
      const endAttempt = isStopping ? undefined : limit.take(hookId);
      if (endAttempt === undefined) return await leaveToWorkers(dependencies, hookId, deliveryId);
      const begun = redeliverNow(dependencies, { hookId, id: deliveryId }, inFlight);
      void begun
        .then((redelivery) => redelivery?.attempt)
        .catch((error: unknown) => reportFailure(dependencies.log, error))
        .finally(endAttempt);
      return await begun;
    },
    stop: async () => {
      isStopping = true;
      await inFlight.settle();
    },
  };
}

interface RequestedDelivery {
  readonly hookId: number;
  readonly id: number;
}

async function testOnce(
  dependencies: ManualAttemptsDependencies,
  id: number,
  deadlineMs: number,
): Promise<SendReport | undefined> {
  const hookId = await reserveTest(dependencies.store, id, deadlineMs + GRACE_MS);
  return hookId === undefined ? undefined : await attempt(dependencies, { hookId, id }, deadlineMs);
}

async function redeliverNow(
  dependencies: ManualAttemptsDependencies,
  { hookId, id }: RequestedDelivery,
  inFlight: InFlight,
): Promise<Redelivery | undefined> {
  const nowMs = dependencies.world.nowMs();
  const deadlineMs = nowMs + ATTEMPT_DEADLINE_MS;
  const outcome = await restartReserved(dependencies.store, [hookId, id], { nowMs, untilMs: deadlineMs + GRACE_MS });
  if (outcome === 'requested') throw refuseSecond(id);
  if (outcome === 'absent') return undefined;
  const made = inFlight.track(() => attempt(dependencies, { hookId, id }, deadlineMs));
  return { attempt: storeAttempt(dependencies, made) };
}

/** Resolves when the result is stored. A stop waits only for the attempt, and stores results within a time limit of its own. */
async function storeAttempt(
  { writer }: Pick<ManualAttemptsDependencies, 'writer'>,
  attempt: Promise<SendReport | undefined>,
): Promise<SendReport | undefined> {
  const report = await attempt;
  if (report !== undefined) await writer.flush();
  return report;
}

async function leaveToWorkers(
  dependencies: ManualAttemptsDependencies,
  hookId: number,
  id: number,
): Promise<Redelivery | undefined> {
  const outcome = await restart(dependencies.store, [hookId, id], dependencies.world.nowMs());
  if (outcome === 'requested') throw refuseSecond(id);
  if (outcome === 'absent') return undefined;
  dependencies.scan.request();
  return { attempt: Promise.resolve(undefined) };
}

/** Makes the attempt, and queues its result without waiting until it is stored. Undefined if nothing was sent. */
async function attempt(
  dependencies: ManualAttemptsDependencies,
  { hookId, id }: RequestedDelivery,
  deadlineMs: number,
): Promise<SendReport | undefined> {
  const { store, world, writer } = dependencies;
  const [content] = await readContents(store, [{ hookId, id }]);
  if (content === undefined || content.url === null) return undefined;
  const isHeld = content.disabled_at_ms !== null && content.is_test === 0;
  const [attemptId = 0] = await store.makeIds(1);
  const leftMs = Math.min(ATTEMPT_DEADLINE_MS, deadlineMs - world.nowMs());
  if (isHeld || leftMs < LEAST_TIME_MS) return await leaveOut(dependencies, content);
  const made = await dependencies.makeAttempt(content, { deadlineMs: leftMs });
  const result = planAttemptResult(made, { ...OUTSIDE_SHARDS, attemptId }, world);
  writer.add(describeResults(dependencies.table, made, result));
  return made.report;
}

/** The workers send the delivery now, or when its hook is enabled. A test is not sent then: its person would not expect it any more. */
async function leaveOut(
  { store, world, scan }: ManualAttemptsDependencies,
  { hook_id: hookId, id, is_test: isTest }: ContentRow,
): Promise<undefined> {
  if (isTest === 1 && (await expireAtDisabled(store, [hookId, id]))) return;
  await endReservation(store, [hookId, id], world.nowMs());
  scan.request();
}

function describeResults(table: HookQueueTable, { content, report }: Attempt, result: AttemptResult) {
  const { hook_id: hookId, url, generation } = content;
  const place = { hookId, origin: new URL(url ?? '').origin, generation };
  return { attempt: { result, report, url }, changes: recordManualOutcome(table, place, report.outcome) };
}

function reportFailure(log: Log, error: unknown): void {
  if (isFailure(error) && error.code === 'conflict') return;
  log.warn({ err: error }, 'Cannot redeliver at once; the workers send it when it is due');
}

function refuseSecond(deliveryId: number): Failure {
  const message = `Cannot redeliver ${deliveryId}: an earlier redelivery of it is being sent or waits to be sent`;
  return new Failure('conflict', message);
}
