/** Stores the live state periodically and at the stop, and forgets requests without recent events. */
import { Counter } from 'prom-client';
import type { Store } from '../../database/store.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import { sweepPendingRequests } from '../observations/observation-store.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { listLiveStates, saveLiveStates } from './live-state-store.ts';

export interface LiveStateKeeper extends Worker {
  /** Takes up what was written down; call after the models are loaded. */
  restore(): Promise<void>;
  /** This model has observed something since. */
  markChanged(targetModel: string): void;
}

const REST_MS = 5000;
/** In one transaction. Each may be a megabyte. */
const STATES_AT_ONCE = 16;
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
  const lost = new Counter({
    name: 'trivet_prediction_incomplete_requests_total',
    help: 'Requests that were forgotten before all of their events came.',
    registers: [metrics],
  });

  async function save(): Promise<void> {
    // A copy: what is observed meanwhile waits for the next round.
    const names = Array.from(changed);
    for (let start = 0; start < names.length; start += STATES_AT_ONCE)
      await saveSome(names.slice(start, start + STATES_AT_ONCE));
  }

  async function saveSome(names: readonly string[]): Promise<void> {
    for (const name of names) changed.delete(name);
    try {
      const states = names.map((name) => ({ targetModel: name, saved: predictor.live(name).save() }));
      await saveLiveStates(store, states, world.nowMs());
    } catch (error) {
      for (const name of names) changed.add(name);
      throw error;
    }
  }

  async function round(): Promise<void> {
    const nowMs = world.nowMs();
    await save();
    const limits = { incompleteBeforeMs: nowMs - INCOMPLETE_MS, completeBeforeMs: nowMs - COMPLETE_MS };
    lost.inc(await sweepPendingRequests(store, limits));
  }

  const worker = createRoundWorker({ name: 'live-state', restMs: REST_MS, world, log, round });
  return {
    ...worker,
    markChanged: (targetModel) => void changed.add(predictor.liveNameOf(targetModel)),
    async restore() {
      for (const { targetModel, saved } of await listLiveStates(store)) predictor.live(targetModel).restore(saved);
    },
    async stop() {
      await worker.stop();
      await save().catch((err: unknown) => log.error({ err }, 'Failed to save the live state of the models'));
    },
  };
}
