/**
 * Expires held deliveries, cancels those of deleted hooks, deletes the log after its time, and corrects times that a wrong
 * clock wrote; one process at a time.
 */
import { idAtMs } from '../../../database/ids.ts';
import type { Store } from '../../../database/store.ts';
import type { SteadyWorld } from '../../../steady-clock.ts';
import type { Log } from '../../../telemetry/log.ts';
import { createLeasedWorker } from '../../../workers/leased-worker.ts';
import type { Worker } from '../../../workers/worker.ts';
import {
  cancelDeleted,
  deleteLogBefore,
  deleteUnusedContents,
  expireHeld,
  forgetDeletedHookQueues,
} from '../queue/delivery-sweep-store.ts';
import { correctDeliveryTimes, correctHookQueueTimes } from '../queue/far-time-store.ts';
import { HOLD_MS, KEEP_LOG_MS } from '../schedule/delivery.ts';
import { forgetDeliveryMinutes } from '../statistics/delivery-minute-store.ts';

const REST_MS = 60_000;
/** Retries may be a million, and all that wait are read: their times are checked in the first round and in every tenth. */
const RETRIES_EVERY_ROUNDS = 10;

interface SweeperDependencies {
  readonly store: Store;
  readonly world: SteadyWorld;
  readonly log: Log;
}

export function createDeliverySweeper(dependencies: SweeperDependencies): Worker {
  const { store, world, log } = dependencies;
  let rounds = 0;
  const round = async (): Promise<void> => {
    if (world.isClockTrusted()) await sweepAndLog(dependencies);
    const corrected = await correctTimes(store, world.nowMs(), { withRetries: rounds % RETRIES_EVERY_ROUNDS === 0 });
    if (corrected > 0) log.warn({ corrected }, 'Corrected due times that a wrong clock had set too late');
    rounds += 1;
  };
  return createLeasedWorker({ name: 'delivery-sweeper', restMs: REST_MS, store, world, log, round });
}

async function sweepAndLog({ store, world, log }: SweeperDependencies): Promise<void> {
  const swept = await sweepDeliveries(store, world.nowMs());
  if (Object.values(swept).some((count) => count > 0)) log.info(swept, 'Swept deliveries');
}

/** One sweep. Two processes may run it at once without harm; the lease only saves the work. */
export async function sweepDeliveries(store: Store, nowMs: number) {
  const expired = await expireHeld(store, nowMs - HOLD_MS);
  const canceled = await cancelDeleted(store);
  const deleted = await deleteLogBefore(store, idAtMs(nowMs - KEEP_LOG_MS));
  await deleteUnusedContents(store, idAtMs(nowMs - KEEP_LOG_MS));
  await forgetDeletedHookQueues(store, nowMs - KEEP_LOG_MS);
  await forgetDeliveryMinutes(store, nowMs);
  return { expired, canceled, deleted };
}

/** Corrects due times that lie further ahead than any schedule plans; returns how many. */
export async function correctTimes(
  store: Store,
  nowMs: number,
  { withRetries }: { readonly withRetries: boolean },
): Promise<number> {
  const ofFirst = await correctDeliveryTimes(store, 0, nowMs);
  const ofRetries = withRetries ? await correctDeliveryTimes(store, 1, nowMs) : 0;
  return ofFirst + ofRetries + (await correctHookQueueTimes(store, nowMs));
}
