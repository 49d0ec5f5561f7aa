/**
 * Decides which samples of a model are deleted when there are too many: old ones, but some of every load stay. Samples are thinned
 * even if no model is trained on them: otherwise a process that only collects them would fill its disk.
 */
import { Gauge } from 'prom-client';
import type { Store } from '../../database/store.ts';
import type { SteadyWorld } from '../../steady-clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import { describeLoadClass } from './load-class.ts';
import { listSampledModels } from './sample-count-store.ts';
import { hasNewSamples, type LoadClassCount, type SampleLimits, thinModelSamples } from './sample-store.ts';

export interface SampleKeeper extends Worker {
  /** Counts new samples of a model, which are thinned once there are enough of them. */
  countAdded(targetModel: string, samples: number): void;
  /** Thins now. */
  thin(targetModel: string): Promise<void>;
  /** Thins the models that are due, once. The worker repeats it. */
  runRound(): Promise<void>;
}

const REST_MS = 5000;
/** Thinning sorts all samples of a model, so it waits until this many were added. */
const ADDED_BEFORE_THINNING = 20_000;
/** Commands and other processes add samples too, so all models are checked this often. */
const LOOK_MS = 3_600_000;
/** At most this many models are counted; one dropped from the count is thinned at the next check of all models. */
const MAX_COUNTED = 65_536;
/** At most this many models are in the metrics: callers may report any name, and every series is written at each scrape. */
const MAX_SHOWN = 256;
/** The newest always stay. An older one stays if it is among the newest of its server in its load class, and of that class. */
export const SAMPLE_LIMITS: SampleLimits = { newest: 20_000, perServerAndLoadClass: 50, perLoadClass: 500 };

export interface SampleKeeperDependencies {
  readonly store: Store;
  readonly world: SteadyWorld;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function createSampleKeeper({ store, world, log, metrics }: SampleKeeperDependencies): SampleKeeper {
  const added = new Map<string, number>();
  /** The newest sample of each model when it was last thinned. */
  const lastIds = new Map<string, number>();
  const showCounts = createSampleGauge(metrics);
  let nextLookMs: number | undefined;

  async function thin(targetModel: string): Promise<void> {
    added.delete(targetModel);
    // If the clock is behind, the newest rows seem to be dated ahead, and would be deleted first.
    const dating = world.isClockTrusted() ? { nowMs: world.nowMs() } : {};
    const { removed, kept, lastId } = await thinModelSamples(store, targetModel, { ...SAMPLE_LIMITS, ...dating });
    setBounded(lastIds, targetModel, lastId);
    showCounts(targetModel, kept);
    if (removed > 0) log.debug({ model: targetModel, removed }, 'Thinned the samples');
  }

  /** Every model is thinned and counted at the first check. */
  async function lookAtAll(stopping: AbortSignal): Promise<void> {
    for await (const targetModel of listSampledModels(store)) {
      if (stopping.aborted) return;
      const since = { count: ADDED_BEFORE_THINNING, lastId: lastIds.get(targetModel) ?? 0 };
      if (nextLookMs === undefined || (await hasNewSamples(store, targetModel, since))) await thin(targetModel);
    }
    nextLookMs = world.monotonicMs() + LOOK_MS;
  }

  async function round(stopping: AbortSignal): Promise<void> {
    if (nextLookMs === undefined || world.monotonicMs() >= nextLookMs) await lookAtAll(stopping);
    for (const [targetModel, count] of added) if (count >= ADDED_BEFORE_THINNING) await thin(targetModel);
  }

  return {
    ...createRoundWorker({ name: 'samples', restMs: REST_MS, world, log, round }),
    thin,
    runRound: () => round(new AbortController().signal),
    countAdded: (targetModel, count) => setBounded(added, targetModel, (added.get(targetModel) ?? 0) + count),
  };
}

/** Sets the number of a model. Beyond `MAX_COUNTED` models, the one that came first is forgotten. */
function setBounded(numbers: Map<string, number>, targetModel: string, value: number): void {
  numbers.set(targetModel, value);
  if (numbers.size > MAX_COUNTED) numbers.delete(numbers.keys().next().value!);
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
