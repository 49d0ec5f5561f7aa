/** Forgets requests without recent events. */
import { Counter } from 'prom-client';
import type { Store } from '../../database/store.ts';
import { createSweepPace } from '../../database/sweep.ts';
import type { SteadyWorld } from '../../steady-clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import { sweepPendingRequests } from './observation-store.ts';

const REST_MS = 5000;
const INCOMPLETE_MS = 60 * 60_000;
const COMPLETE_MS = 10 * 60_000;

export interface RequestSweeperDependencies {
  readonly store: Store;
  readonly world: SteadyWorld;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function createRequestSweeper({ store, world, log, metrics }: RequestSweeperDependencies): Worker {
  const lost = new Counter({
    name: 'trivet_prediction_incomplete_requests_total',
    help: 'Requests that were forgotten before all of their events came.',
    registers: [metrics],
  });

  async function round(signal: AbortSignal): Promise<void> {
    if (!world.isClockTrusted()) return;
    const nowMs = world.nowMs();
    const limits = { incompleteBeforeMs: nowMs - INCOMPLETE_MS, completeBeforeMs: nowMs - COMPLETE_MS };
    lost.inc(await sweepPendingRequests(store, limits, createSweepPace(world, signal)));
  }

  return createRoundWorker({ name: 'request-sweeper', restMs: REST_MS, world, log, round });
}
