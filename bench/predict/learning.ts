/** Trains as the service does: it stores samples, refits in a thread and swaps versions in. */
import type { Store } from '../../src/database/store.ts';
import { createTrainer } from '../../src/prediction/learning/trainer-worker.ts';
import { insertSampleStatement } from '../../src/prediction/observations/sample-store.ts';
import { createPredictor, type SwappablePredictor } from '../../src/prediction/online/predictor.ts';
import { createModelLoader } from '../../src/prediction/registry/model-loader.ts';
import { listModelVersions, promoteModel } from '../../src/prediction/registry/model-store.ts';
import { packModel, publishModel } from '../../src/prediction/registry/publish-model.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { realWorld } from '../../src/world.ts';
import { createObservations, trainSyntheticModel } from './trained-predictor.ts';

const MODEL = 'qwen3-32b';

export interface Learning {
  readonly predictor: SwappablePredictor;
  /** Begins to refit and swap, again and again. */
  start(): void;
  readonly refits: () => number;
}

export interface LearningParts {
  readonly store: Store;
  readonly dataDir: string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly samples: number;
}

export async function openLearning({ store, dataDir, log, metrics, samples }: LearningParts): Promise<Learning> {
  await insertSamples(store, samples);
  const packed = packModel(trainSyntheticModel(5000));
  for (const reason of ['first', 'second'])
    await publishModel(store, { name: MODEL, packed, source: {}, promotion: 'promote', reason, nowMs: Date.now() });
  const predictor = createPredictor();
  const loader = createModelLoader({ store, world: realWorld, predictor, log, metrics });
  await loader.load();
  const trainer = createTrainer({
    store,
    place: { dataDir },
    log,
    metrics,
    world: realWorld,
    refitRows: 50,
    refitSeconds: 1,
    onTrained: async () => {},
  });
  // The first refit starts the training process, as the service does at its start.
  await trainer.runRound();
  let refits = 0;

  async function refitForever(): Promise<void> {
    for (;;) {
      await insertSamples(store, 60);
      await trainer.runRound();
      // Swaps even if the new version is not better, so that the cost of a swap is measured too.
      const versions = await listModelVersions(store, MODEL);
      const { version } = versions.find(({ isPromoted }) => !isPromoted)!;
      await promoteModel(store, { name: MODEL, version, nowMs: Date.now(), reason: 'a swap' });
      await loader.load();
      refits++;
    }
  }

  return {
    predictor,
    refits: () => refits,
    start: () => void refitForever(),
  };
}

async function insertSamples(store: Store, count: number): Promise<void> {
  const observations = createObservations(count);
  const ids = await store.makeIds(count);
  for (let from = 0; from < count; from += 1000)
    await store.writeAll(
      observations
        .slice(from, from + 1000)
        .map((observation, index) =>
          insertSampleStatement({ id: ids[from + index]!, observation: { ...observation, atMs: Date.now() } }),
        ),
    );
}
