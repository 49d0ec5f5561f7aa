/**
 * Runs the sweep of deliveries in one process: expires held ones, deletes old ones, corrects wrong due times. It also cancels the
 * deliveries of deleted hooks, and deletes contents without a delivery, the queues of deleted hooks, and old counts by minute.
 */
import { idAtMs } from '../../../database/ids.ts';
import type { Store } from '../../../database/store.ts';
import { createSweepContext, SWEEP_WITHOUT_PAUSES, type SweepContext, sweepEach } from '../../../database/sweep.ts';
import type { SteadyWorld } from '../../../steady-clock.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { Metrics } from '../../../telemetry/metrics.ts';
import { createLeasedWorker } from '../../../workers/leased-worker.ts';
import { createSweepFailures } from '../../../workers/sweep-failures.ts';
import type { Worker } from '../../../workers/worker.ts';
import { correctDeliveryTimes, correctHookQueueTimes, hasLaterDelivery } from '../queue/correct-due-times-store.ts';
import {
  cancelDeleted,
  deleteLogBefore,
  deleteUnusedContents,
  expireHeld,
  forgetDeletedHookQueues,
} from '../queue/delivery-sweep-store.ts';
import { HOLD_MS, KEEP_LOG_MS } from '../schedule/delivery.ts';
import { longestRetryMs } from '../schedule/retry-policy.ts';
import { forgetDeliveryMinutes } from '../statistics/delivery-minute-store.ts';

const REST_MS = 60_000;
/** Due times of retries are checked only in every tenth round, beginning with the first, since that reads all waiting retries. */
const RETRIES_EVERY_ROUNDS = 10;
/** The longest wait after the first or the second failed attempt. */
const SHORT_WAIT_MS = longestRetryMs(2);

const NAME = 'delivery-sweeper';

interface SweeperDependencies {
  readonly store: Store;
  readonly world: SteadyWorld;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function createDeliverySweeper(dependencies: SweeperDependencies): Worker {
  const { store, world, log } = dependencies;
  const onFailure = createSweepFailures(dependencies, NAME, KINDS);
  let rounds = 0;
  const round = async (signal: AbortSignal): Promise<void> => {
    if (world.isClockTrusted()) await sweepAndLog(dependencies, createSweepContext(world, onFailure, signal));
    const longestMs = rounds % RETRIES_EVERY_ROUNDS === 0 ? await findLongestWait(dependencies) : 0;
    const corrected = await correctTimes(store, world.nowMs(), { longestMs });
    if (corrected > 0) log.warn({ corrected }, 'Corrected due times that a wrong clock had set too late');
    rounds += 1;
  };
  return createLeasedWorker({ name: NAME, restMs: REST_MS, store, world, log, round });
}

async function sweepAndLog({ store, world, log }: SweeperDependencies, sweeping: SweepContext): Promise<void> {
  const { expired, canceled, deleted } = await sweepDeliveries(store, world.nowMs(), sweeping);
  if (expired + canceled + deleted > 0) log.info({ expired, canceled, deleted }, 'Swept deliveries');
}

/**
 * The longest wait of a retry that may be corrected. If the clock is behind, the due time of every retry seems too late, and a corrected
 * one is due at once when the clock is set right. Losing a short wait does no harm; after a long one an attempt would come far too early.
 */
async function findLongestWait({ store, world }: SweeperDependencies): Promise<number> {
  const isBehind = !world.isClockTrusted() && (await hasLaterDelivery(store, world.nowMs()));
  return isBehind ? SHORT_WAIT_MS : Number.POSITIVE_INFINITY;
}

/** The order of the sweep: the row of a hook queue is deleted after its log. */
const KINDS = ['expired', 'canceled', 'deleted', 'unusedContents', 'hookQueues', 'minutes'] as const;

/** Sweeps once. Two processes may do so at the same time without harm; the lease only saves work. */
export async function sweepDeliveries(store: Store, nowMs: number, sweeping: SweepContext = SWEEP_WITHOUT_PAUSES) {
  const oldId = idAtMs(nowMs - KEEP_LOG_MS);
  const sweeps: Record<(typeof KINDS)[number], () => Promise<number>> = {
    expired: () => expireHeld(store, nowMs - HOLD_MS, sweeping),
    canceled: () => cancelDeleted(store, sweeping),
    deleted: () => deleteLogBefore(store, oldId, sweeping),
    unusedContents: () => deleteUnusedContents(store, oldId, sweeping),
    hookQueues: () => forgetDeletedHookQueues(store, nowMs - KEEP_LOG_MS, sweeping),
    minutes: () => forgetDeliveryMinutes(store, nowMs, sweeping),
  };
  return await sweepEach(sweeping, sweeps);
}

/** Corrects due times that are further ahead than any schedule allows; of retries only those with waits up to `longestMs`. */
export async function correctTimes(
  store: Store,
  nowMs: number,
  { longestMs }: { readonly longestMs: number },
): Promise<number> {
  const ofFirst = await correctDeliveryTimes(store, { lane: 0, nowMs, longestMs: Number.POSITIVE_INFINITY });
  const ofRetries = longestMs === 0 ? 0 : await correctDeliveryTimes(store, { lane: 1, nowMs, longestMs });
  return ofFirst + ofRetries + (await correctHookQueueTimes(store, nowMs));
}
