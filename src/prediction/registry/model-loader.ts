/** Loads the promoted version into the predictor, whichever process promoted it. */
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

export interface ModelLoaderOptions {
  readonly store: Store;
  readonly predictor: SwappablePredictor;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function createModelLoader(options: ModelLoaderOptions): ModelLoader {
  const { store, log } = options;
  const synchronize = createSynchronizer(options);
  let stopWatching: (() => void) | undefined;
  let isDirty = false;
  let running: Promise<void> | undefined;

  /** One load at a time; a change that comes meanwhile is loaded by one more round. */
  async function loadUntilClean(): Promise<void> {
    do {
      isDirty = false;
      try {
        await synchronize();
      } catch (error) {
        log.error({ err: error }, 'Cannot look for promoted models');
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

/** Returns what makes the predictor serve the promoted models, loading only those that changed since the last time. */
function createSynchronizer({ store, predictor, log, metrics }: ModelLoaderOptions): () => Promise<void> {
  const loaded = new Map<string, PromotedModel>();
  createPromotedAtGauge(metrics, () => loaded.values());

  async function loadModel(promoted: PromotedModel): Promise<void> {
    const { name, version } = promoted;
    try {
      const model = decodeModel(await readModelFile(store, name, version));
      await predictor.swapBetweenCalls(name, model);
      loaded.set(name, promoted);
      log.info({ model: model.id }, 'Serving a model');
    } catch (error) {
      log.error(
        { err: error, model: formatModelId(name, version) },
        'Cannot load a promoted model; the version before, or the prior, stays in service',
      );
    }
  }

  function removeOthers(promoted: readonly PromotedModel[]): void {
    const names = new Set(promoted.map((model) => model.name));
    for (const name of loaded.keys())
      if (!names.has(name)) {
        predictor.swap(name, undefined);
        loaded.delete(name);
      }
  }

  return async () => {
    const promoted = await listPromotedModels(store);
    for (const model of promoted)
      if (loaded.get(model.name)?.checksum === model.checksum) loaded.set(model.name, model);
      else await loadModel(model);
    removeOthers(promoted);
  };
}

/** Callers name the models that are learned: the last promotions are shown. */
const MAX_SERIES = 256;

export function createPromotedAtGauge(
  metrics: Metrics,
  listLoaded: () => Iterable<Pick<PromotedModel, 'name' | 'version' | 'promotedAtMs'>>,
): void {
  new Gauge({
    name: 'trivet_prediction_version_promoted_seconds',
    help: 'When the version that this process serves was promoted, in seconds since the epoch.',
    labelNames: ['model', 'version'],
    registers: [metrics],
    collect() {
      this.reset();
      const latestFirst = [...listLoaded()].sort((left, right) => right.promotedAtMs - left.promotedAtMs);
      for (const { name, version, promotedAtMs } of latestFirst.slice(0, MAX_SERIES))
        this.set({ model: name, version }, promotedAtMs / 1000);
    },
  });
}
