/** Runs the sweep of events and idempotency keys past their retention, and of the hourly counts of hook tests. */
import type { Store } from '../../database/store.ts';
import { createSweepContext, SWEEP_WITHOUT_PAUSES, type SweepContext, sweepEach } from '../../database/sweep.ts';
import type { SteadyWorld } from '../../steady-clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createLeasedWorker } from '../../workers/leased-worker.ts';
import { createSweepFailures } from '../../workers/sweep-failures.ts';
import type { Worker } from '../../workers/worker.ts';
import { KEEP_LOG_MS } from '../delivery/schedule/delivery.ts';
import { pruneEventKeys, pruneEvents } from '../events/event-store.ts';
import { forgetHookTestsBefore } from '../hooks/hook-test-store.ts';

const REST_MS = 10 * 60_000;
const HOUR_MS = 3_600_000;
/** Events are kept as long as deliveries: 30 days. */
const KEEP_EVENTS_MS = KEEP_LOG_MS;

const NAME = 'event-sweeper';
const KINDS = ['keys', 'events', 'hookTests'] as const;

interface SweeperDependencies {
  readonly store: Store;
  readonly world: SteadyWorld;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function createEventSweeper(dependencies: SweeperDependencies): Worker {
  const { store, world, log } = dependencies;
  const onFailure = createSweepFailures(dependencies, NAME, KINDS);
  const round = async (signal: AbortSignal): Promise<void> => {
    if (world.isClockTrusted()) await sweepEvents(store, world.nowMs(), createSweepContext(world, onFailure, signal));
  };
  return createLeasedWorker({ name: NAME, restMs: REST_MS, store, world, log, round });
}

/** Deletes what has expired. Two processes may do so at the same time without harm; the lease only saves work. */
export async function sweepEvents(store: Store, nowMs: number, sweeping: SweepContext = SWEEP_WITHOUT_PAUSES) {
  const sweeps: Record<(typeof KINDS)[number], () => Promise<number>> = {
    keys: () => pruneEventKeys(store, nowMs, sweeping),
    events: () => pruneEvents(store, nowMs - KEEP_EVENTS_MS, sweeping),
    hookTests: () => forgetHookTestsBefore(store, Math.floor(nowMs / HOUR_MS), sweeping),
  };
  return await sweepEach(sweeping, sweeps);
}
