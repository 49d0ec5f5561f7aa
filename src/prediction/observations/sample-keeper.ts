/**
 * Decides which samples of a model are deleted when there are too many: old ones, but some of every load stay. Samples are thinned
 * even if no model is trained on them: otherwise a process that only collects them would fill its disk.
 */
import { Gauge } from 'prom-client';
import type { Store } from '../../database/store.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import { describeLoadClass } from './load-class.ts';
import { listSampledModels } from './sample-count-store.ts';
import { type LoadClassCount, type SampleLimits, thinModelSamples } from './sample-store.ts';

export interface SampleKeeper extends Worker {
  /** Counts new samples of a model, which are thinned once there are enough of them. */
  countAdded(targetModel: string, samples: number): void;
  /** Thins now. */
  thin(targetModel: string): Promise<void>;
}

const REST_MS = 5000;
/** Thinning sorts all samples of a model, so it waits until this many were added. */
const ADDED_BEFORE_THINNING = 20_000;
/** At most this many models are counted; one dropped from the count is thinned after the next start at the latest. */
const MAX_COUNTED = 65_536;
/** At most this many models are in the metrics: callers may report any name, and every series is written at each scrape. */
const MAX_SHOWN = 256;
export const SAMPLE_LIMITS: SampleLimits = { newest: 20_000, perServerAndLoadClass: 50, perLoadClass: 500 };

export interface SampleKeeperDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function createSampleKeeper({ store, world, log, metrics }: SampleKeeperDependencies): SampleKeeper {
  const added = new Map<string, number>();
  const showCounts = createSampleGauge(metrics);
  let hasLookedAtAll = false;

  async function thin(targetModel: string): Promise<void> {
    added.delete(targetModel);
    const { removed, kept } = await thinModelSamples(store, targetModel, SAMPLE_LIMITS);
    showCounts(targetModel, kept);
    if (removed > 0) log.debug({ model: targetModel, removed }, 'Thinned the samples');
  }

  async function round(stopping: AbortSignal): Promise<void> {
    // Commands and other processes add samples too.
    if (!hasLookedAtAll)
      for await (const targetModel of listSampledModels(store)) {
        if (stopping.aborted) return;
        await thin(targetModel);
      }
    hasLookedAtAll = true;
    for (const [targetModel, count] of added) if (count >= ADDED_BEFORE_THINNING) await thin(targetModel);
  }

  return {
    ...createRoundWorker({ name: 'samples', restMs: REST_MS, world, log, round }),
    thin,
    countAdded(targetModel, count) {
      added.set(targetModel, (added.get(targetModel) ?? 0) + count);
      if (added.size > MAX_COUNTED) added.delete(added.keys().next().value!);
    },
  };
}

type Labels = Record<'model' | keyof ReturnType<typeof describeLoadClass>, string>;

/** Shows how many samples a model has in each load class, for the models that were counted last. */
function createSampleGauge(metrics: Metrics) {
  const samples = new Gauge({
    name: 'trivet_prediction_samples',
    help: 'Samples that a model would learn from, by load, as last counted.',
    labelNames: ['model', 'waiting', 'kv_cache', 'prefix', 'length'],
    registers: [metrics],
  });
  const shown = new Map<string, Labels[]>();

  function hide(targetModel: string): void {
    for (const labels of shown.get(targetModel) ?? []) samples.remove(labels);
    shown.delete(targetModel);
  }

  return (targetModel: string, counts: readonly LoadClassCount[]): void => {
    hide(targetModel);
    const labels = counts.map(({ load_class }) => ({ model: targetModel, ...describeLoadClass(load_class) }));
    for (const [index, { count }] of counts.entries()) samples.set(labels[index]!, count);
    shown.set(targetModel, labels);
    if (shown.size > MAX_SHOWN) hide(shown.keys().next().value!);
  };
}
