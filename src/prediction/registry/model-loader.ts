/** Keeps the predictor in step with the promotions in the store, whichever process makes them. */
import { Gauge } from 'prom-client';
import type { Store } from '../../database/store.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Worker } from '../../workers/worker.ts';
import { decodeModel } from '../model/model-codec.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { formatModelId } from '../schema/model-name.ts';
import { listPromotedModels, MODELS_TOPIC, type PromotedModel, readModelFile } from './model-store.ts';

export interface ModelLoader extends Worker {
  /** Loads what is promoted now. Never rejects: a model that cannot be read leaves the one before in service. */
  load(): Promise<void>;
}

export function createModelLoader({
  store,
  predictor,
  log,
  metrics,
}: {
  readonly store: Store;
  readonly predictor: SwappablePredictor;
  readonly log: Log;
  readonly metrics: Metrics;
}): ModelLoader {
  const promotedAt = new Gauge({
    name: 'trivet_prediction_version_promoted_seconds',
    help: 'When the version that this process serves was promoted, in seconds since the epoch.',
    labelNames: ['model', 'version'],
    registers: [metrics],
  });
  const loaded = new Map<string, PromotedModel>();
  let stopWatching: (() => void) | undefined;
  let isDirty = false;
  let running: Promise<void> | undefined;

  async function loadChanged(): Promise<void> {
    const promoted = await listPromotedModels(store);
    for (const model of promoted)
      if (loaded.get(model.name)?.checksum === model.checksum) loaded.set(model.name, model);
      else await loadModel(model);
    const names = new Set(promoted.map((model) => model.name));
    for (const name of loaded.keys())
      if (!names.has(name)) {
        predictor.swap(name, undefined);
        loaded.delete(name);
      }
    promotedAt.reset();
    for (const { name, version, promotedAtMs } of loaded.values())
      promotedAt.set({ model: name, version }, promotedAtMs / 1000);
  }

  async function loadModel(promoted: PromotedModel): Promise<void> {
    const { name, version } = promoted;
    try {
      const model = decodeModel(await readModelFile(store, name, version));
      await predictor.swapBetweenCalls(name, model);
      loaded.set(name, promoted);
      log.info({ model: model.id }, 'serving a model');
    } catch (error) {
      log.error({ err: error, model: formatModelId(name, version) }, 'cannot load a promoted model');
    }
  }

  /** One load at a time; a change that comes meanwhile is looked at once more afterwards. */
  async function loadUntilClean(): Promise<void> {
    do {
      isDirty = false;
      try {
        await loadChanged();
      } catch (error) {
        log.error({ err: error }, 'cannot look for promoted models');
      }
    } while (isDirty);
    running = undefined;
  }

  function load(): Promise<void> {
    isDirty = true;
    running ??= loadUntilClean();
    return running;
  }

  return {
    name: 'model-loader',
    load,
    start() {
      stopWatching ??= store.watch(MODELS_TOPIC, () => void load());
      void load();
    },
    async stop() {
      stopWatching?.();
      await running;
    },
  };
}
