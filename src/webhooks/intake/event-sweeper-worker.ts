/** Deletes, a few times an hour, events and idempotency keys past their retention. */
import type { Store } from '../../database/store.ts';
import type { SteadyWorld } from '../../steady-clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { createLeasedWorker } from '../../workers/leased-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import { pruneEvents } from '../events/event-store.ts';
import { forgetHookTestsBefore } from '../hooks/hook-test-store.ts';

const REST_MS = 10 * 60_000;
const HOUR_MS = 3_600_000;
/** As long as deliveries are kept. */
const KEEP_EVENTS_MS = 30 * 24 * HOUR_MS;

interface SweeperDependencies {
  readonly store: Store;
  readonly world: SteadyWorld;
  readonly log: Log;
}

export function createEventSweeper(dependencies: SweeperDependencies): Worker {
  const round = async (): Promise<void> => {
    if (dependencies.world.isClockTrusted()) await sweepEvents(dependencies);
  };
  return createLeasedWorker({ ...dependencies, name: 'event-sweeper', restMs: REST_MS, round });
}

/** One round. Two at once would do no harm; the lease saves the work. */
export async function sweepEvents({ store, world }: { readonly store: Store; readonly world: World }): Promise<void> {
  const nowMs = world.nowMs();
  await pruneEvents(store, nowMs, KEEP_EVENTS_MS);
  await forgetHookTestsBefore(store, Math.floor(nowMs / HOUR_MS));
}
