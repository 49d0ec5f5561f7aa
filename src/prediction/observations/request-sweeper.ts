/**
 * Decides when a request is forgotten: ten minutes after it is complete, or, if it failed or was cancelled, an hour after its last
 * event. A complete one was dispatched, had a first token and has finished. Until it is forgotten, a repeated event is recognised.
 */
import { Counter } from 'prom-client';
import type { Store } from '../../database/store.ts';
import { createSweepContext, type SweepContext, sweepEach } from '../../database/sweep.ts';
import type { SteadyWorld } from '../../steady-clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import { createSweepFailures } from '../../workers/sweep-failures.ts';
import type { Worker } from '../../workers/worker.ts';
import { sweepCompleteRequests, sweepOldRequests } from './observation-store.ts';

const REST_MS = 5000;
const INCOMPLETE_MS = 60 * 60_000;
const COMPLETE_MS = 10 * 60_000;

const NAME = 'request-sweeper';
const KINDS = ['oldRequests', 'completeRequests'] as const;

export interface RequestSweeperDependencies {
  readonly store: Store;
  readonly world: SteadyWorld;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function createRequestSweeper(dependencies: RequestSweeperDependencies): Worker {
  const { store, world, log, metrics } = dependencies;
  const lost = new Counter({
    name: 'trivet_prediction_incomplete_requests_total',
    help: 'Requests that were forgotten before all of their events came.',
    registers: [metrics],
  });
  const onFailure = createSweepFailures(dependencies, NAME, KINDS);
  const sweep = createRequestSweep(store, (count) => lost.inc(count));
  const round = async (signal: AbortSignal): Promise<void> => {
    if (world.isClockTrusted()) await sweep(world.nowMs(), createSweepContext(world, onFailure, signal));
  };
  return createRoundWorker({ name: NAME, restMs: REST_MS, world, log, round });
}

/** Exported for its test. `onIncomplete` is called with the number of requests that were never completed. */
export function createRequestSweep(store: Store, onIncomplete: (count: number) => void) {
  // Requests that were complete before this time are deleted. Those that are left there are incomplete, and an event that completes
  // one gives it the event's time. So each sweep starts here, and reads the incomplete ones only once they are old.
  let sweptUntilMs = 0;
  return async (nowMs: number, sweeping: SweepContext) => {
    const completeBeforeMs = nowMs - COMPLETE_MS;
    const sweeps: Record<(typeof KINDS)[number], () => Promise<number>> = {
      oldRequests: () => sweepOldRequests(store, { beforeMs: nowMs - INCOMPLETE_MS, onIncomplete }, sweeping),
      completeRequests: async () => {
        // If the clock was ahead and was corrected, all requests are read again.
        const fromMs = sweptUntilMs <= completeBeforeMs ? sweptUntilMs : 0;
        const range = { fromMs, beforeMs: completeBeforeMs };
        const count = await sweepCompleteRequests(store, range, sweeping);
        sweptUntilMs = completeBeforeMs;
        return count;
      },
    };
    return await sweepEach(sweeping, sweeps);
  };
}
