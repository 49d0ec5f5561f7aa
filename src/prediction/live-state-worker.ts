/** Writes the live state down now and then and at the stop, and forgets requests that nothing is heard of any more. */
import { Counter } from 'prom-client';
import type { Store } from '../database/store.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Worker } from '../workers/worker.ts';
import type { World } from '../world.ts';
import { listLiveStates, saveLiveState } from './live-state-store.ts';
import { sweepPendingRequests } from './observation-store.ts';
import type { SwappablePredictor } from './predictor.ts';

export interface LiveStateKeeper extends Worker {
  /** Takes up what was written down; call after the models are loaded. */
  restore(): Promise<void>;
  /** This model has observed something since. */
  markChanged(targetModel: string): void;
}

const SAVE_EVERY_MS = 5000;
const INCOMPLETE_MS = 60 * 60_000;
const COMPLETE_MS = 10 * 60_000;

export function createLiveStateKeeper({
  store,
  world,
  log,
  metrics,
  predictor,
}: {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly predictor: SwappablePredictor;
}): LiveStateKeeper {
  const changed = new Set<string>();
  const stopping = new AbortController();
  let background: Promise<void> | undefined;
  const lost = new Counter({
    name: 'trivet_prediction_incomplete_requests_total',
    help: 'Requests that were forgotten before all of their events came.',
    registers: [metrics],
  });

  async function save(): Promise<void> {
    const models = Array.from(changed);
    changed.clear();
    for (const targetModel of models)
      await saveLiveState(store, targetModel, predictor.live(targetModel).save(), world.nowMs());
  }

  async function runRound(): Promise<void> {
    const nowMs = world.nowMs();
    await save();
    const limits = { incompleteBeforeMs: nowMs - INCOMPLETE_MS, completeBeforeMs: nowMs - COMPLETE_MS };
    lost.inc(await sweepPendingRequests(store, limits));
  }

  async function runInBackground(): Promise<void> {
    while (!stopping.signal.aborted) {
      await world.sleep(SAVE_EVERY_MS, stopping.signal).catch(() => {});
      try {
        await runRound();
      } catch (error) {
        log.error({ err: error }, 'cannot save the live state of the models');
      }
    }
  }

  return {
    name: 'live-state',
    markChanged: (targetModel) => void changed.add(targetModel),
    async restore() {
      for (const { targetModel, saved } of await listLiveStates(store)) predictor.live(targetModel).restore(saved);
    },
    start() {
      background ??= runInBackground();
    },
    async stop() {
      stopping.abort();
      await background;
    },
  };
}
