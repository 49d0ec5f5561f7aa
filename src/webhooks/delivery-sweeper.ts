/** Ends what was held too long or whose hook is gone, and deletes the log after its time; one process at a time. */
import { acquireLease, releaseLease, renewLease } from '../database/leases.ts';
import type { Store } from '../database/store.ts';
import { describeError } from '../errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { Worker } from '../workers/worker.ts';
import { idAtMs, type World } from '../world.ts';
import { HOLD_MS, KEEP_LOG_MS } from './delivery.ts';
import { cancelDeleted, deleteLogBefore, expireHeld, forgetDeletedEndpoints } from './delivery-sweep-store.ts';

const LEASE = 'delivery-sweep';
const LEASE_MS = 60_000;
const EVERY_MS = 60_000;

interface SweeperParts {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
}

export function createDeliverySweeper({ store, world, log }: SweeperParts): Worker {
  const stopSignal = new AbortController();
  const owner = world.uuid();
  let loop: Promise<void> | undefined;

  const sweepAlone = async (): Promise<void> => {
    const lease = await acquireLease(store, { name: LEASE, owner, nowMs: world.nowMs(), durationMs: LEASE_MS });
    if (lease === undefined) return;
    const renewal = setInterval(() => {
      renewLease(store, lease, world.nowMs() + LEASE_MS).catch(() => {});
    }, LEASE_MS / 3);
    try {
      const swept = await sweepDeliveries(store, world.nowMs());
      if (Object.values(swept).some((count) => count > 0)) log.info(swept, 'Deliveries were swept');
    } finally {
      clearInterval(renewal);
      await releaseLease(store, lease);
    }
  };

  const run = async (): Promise<void> => {
    while (!stopSignal.signal.aborted) {
      await sweepAlone().catch((error: unknown) => log.warn({ reason: describeError(error) }, 'A sweep failed'));
      await world.sleep(EVERY_MS, stopSignal.signal).catch(() => {});
    }
  };

  return {
    name: 'delivery-sweeper',
    start: () => {
      loop = run();
    },
    stop: async () => {
      stopSignal.abort();
      await loop;
    },
  };
}

/** One sweep. Every statement of it may be run by two at once without harm; the lease saves the work. */
export async function sweepDeliveries(store: Store, nowMs: number) {
  const expired = await expireHeld(store, nowMs - HOLD_MS);
  const canceled = await cancelDeleted(store);
  const deleted = await deleteLogBefore(store, idAtMs(nowMs - KEEP_LOG_MS));
  await forgetDeletedEndpoints(store, nowMs - KEEP_LOG_MS);
  return { expired, canceled, deleted };
}
