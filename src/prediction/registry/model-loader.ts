/** Loads the promoted version into the predictor, whichever process promoted it. */
import { Gauge } from 'prom-client';
import type { Store } from '../../database/store.ts';
import { describeError, isFailure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import { decodeModel } from '../model/model-codec.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { formatModelId } from '../schema/model-name.ts';
import { listPromotedModels, MODELS_TOPIC, type PromotedModel, readModelFile } from './model-store.ts';

export interface ModelLoader extends Worker {
  /** Loads the promoted versions. Never rejects: if a model cannot be read, the version before it stays in service. */
  load(): Promise<void>;
}

export interface ModelLoaderOptions {
  readonly store: Store;
  readonly world: World;
  readonly predictor: SwappablePredictor;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The interval of retries for a version that could not be loaded for a temporary reason, such as an unavailable database. */
const RETRY_MS = 2000;

export function createModelLoader(options: ModelLoaderOptions): ModelLoader {
  const { store, world, log } = options;
  const synchronize = createSynchronizer(options);
  let stopWatching: (() => void) | undefined;
  let isDirty = false;
  let isBehind = true;
  let running: Promise<void> | undefined;

  /** Loads once at a time; a change meanwhile causes one more round. */
  async function loadUntilClean(): Promise<void> {
    do {
      isDirty = false;
      isBehind = !(await synchronize());
    } while (isDirty);
    running = undefined;
  }

  function load(): Promise<void> {
    isDirty = true;
    running ??= loadUntilClean();
    return running;
  }

  const round = async (): Promise<void> => {
    if (isBehind) await load();
  };
  const worker = createRoundWorker({ name: 'model-loader', restMs: RETRY_MS, world, log, round });
  return {
    ...worker,
    load,
    start() {
      stopWatching ??= store.watch(MODELS_TOPIC, () => void load());
      // Versions may have been promoted before the watch began.
      isBehind = true;
      worker.start();
    },
    async stop() {
      stopWatching?.();
      await worker.stop();
      await running;
    },
  };
}

/**
 * Returns a function that makes the predictor serve the promoted models, and loads only those that changed since its last call. It
 * resolves to false if a retry may load more. A file that is not a model is tried again only after the next change.
 */
function createSynchronizer({ store, predictor, log, metrics }: ModelLoaderOptions): () => Promise<boolean> {
  const loaded = new Map<string, PromotedModel>();
  const failures = createFailureLog(log);
  createPromotedAtGauge(metrics, () => loaded.values());

  async function loadModel(promoted: PromotedModel): Promise<boolean> {
    const { name, version } = promoted;
    const id = formatModelId(name, version);
    try {
      const model = decodeModel(await readModelFile(store, name, version));
      await predictor.swapBetweenCalls(name, model);
      loaded.set(name, promoted);
      failures.end(name);
      log.info({ model: model.id }, 'Serving a model');
      return true;
    } catch (err) {
      const text = 'Cannot load a promoted model; the version before, or the prior, stays in service';
      failures.report(name, { err, model: id }, text);
      return isFailure(err) && err.code === 'invalid';
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

  async function loadAll(): Promise<boolean> {
    const promoted = await listPromotedModels(store);
    let isDone = true;
    for (const model of promoted)
      if (loaded.get(model.name)?.checksum === model.checksum) loaded.set(model.name, model);
      else isDone = (await loadModel(model)) && isDone;
    removeOthers(promoted);
    failures.end(ALL_MODELS);
    return isDone;
  }

  return async () => {
    try {
      return await loadAll();
    } catch (err) {
      failures.report(ALL_MODELS, { err }, 'Cannot look for promoted models');
      return false;
    }
  };
}

/** A key for failures of all models: no model has this name. */
const ALL_MODELS = '';

/** Because of many retries, logs a failure of a model again only if its text changed or a load succeeded meanwhile. */
function createFailureLog(log: Log) {
  const reported = new Map<string, string>();
  return {
    end: (name: string) => void reported.delete(name),
    report(name: string, fields: { readonly err: unknown; readonly model?: string }, text: string): void {
      const failure = `${fields.model} ${describeError(fields.err)}`;
      if (reported.get(name) !== failure) log.error(fields, text);
      reported.set(name, failure);
    },
  };
}

/** A limit, because callers name the models that are learned: the last promotions are shown. */
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
