/**
 * Trains the models that are due (`training-schedule.ts`). One process at a time trains a model (a lease for each model), in a
 * child process of low priority. Every process serves the version that is published.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { Counter } from 'prom-client';
import { runUnderLease } from '../../database/leases.ts';
import type { StoreOptions } from '../../database/startup/open-store.ts';
import type { Store } from '../../database/store.ts';
import { createLabelLimit } from '../../telemetry/label-limit.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { askWithin, type BackgroundProcess, createBackgroundProcess } from '../../workers/background-process.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import {
  type FreshSamples,
  listFreshSamples,
  readFreshSamples,
  recordTraining,
} from '../observations/sample-count-store.ts';
import { publishModel } from '../registry/publish-model.ts';
import type { TrainingAnswer, TrainingOrder } from './learn-from-samples.ts';
import { createTrainingSchedule, MIN_FRESH_ROWS } from './training-schedule.ts';

export interface TrainerDependencies {
  readonly store: Store;
  /** The child process opens the store at this place. */
  readonly place: Pick<StoreOptions, 'dataDir' | 'databaseUrl'>;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly refitRows: number;
  readonly refitSeconds: number;
  readonly maxTrainingMs?: number;
  /** Called after each training, when the samples that it used may be thinned. */
  readonly onTrained: (targetModel: string) => Promise<void>;
}

export interface Trainer extends Worker {
  /** Trains this model soon, since its errors have drifted. After a training, alarms wait four times its duration. */
  requestTraining(targetModel: string): void;
  /** A time of this model was reported here. */
  countObserved(targetModel: string): void;
  /** Checks every model, up to a thousand, once. The worker repeats it. */
  runRound(): Promise<void>;
}

const REST_MS = 2000;
/** After a crash of its holder, another process trains once this lease has run out. */
const LEASE_MS = 15_000;
/**
 * A child process that has not answered within this time is ended, and a new one trains the model in a later round. A training
 * takes seconds, and up to a hundred times as long when other processes use the processor, since its priority is low.
 */
const MAX_TRAINING_MS = 1_800_000;
/** A page of models costs about a millisecond of a serving thread, so each round checks at most this many. */
const PAGES_A_ROUND = 16;
export function createTrainer(dependencies: TrainerDependencies): Trainer {
  const { store, world, log } = dependencies;
  const learning = createBackgroundProcess(new URL('./trainer-process.ts', import.meta.url));
  const schedule = createTrainingSchedule(dependencies);
  const train = createTraining(dependencies, learning);
  const reported = createReportedModels();
  let lookedAt = '';

  /** Checks the next models in the order of their names, and starts over after the last one. */
  async function runRound(stopping: AbortSignal): Promise<void> {
    for (const targetModel of reported.listOften()) {
      const fresh = await readFreshSamples(store, targetModel);
      reported.forget(targetModel);
      if (fresh !== undefined) await trainDue([fresh], stopping);
    }
    for (let pages = 0; pages < PAGES_A_ROUND; pages++) {
      const { fresh, last } = await listFreshSamples(store, lookedAt);
      // Set before the trainings, so that the next round goes on after this page even if they fail.
      lookedAt = last ?? '';
      await trainDue(fresh, stopping);
      if (last === undefined || stopping.aborted) return;
      await yieldToCalls();
    }
  }

  async function trainDue(models: readonly FreshSamples[], stopping: AbortSignal): Promise<void> {
    for (const fresh of models) {
      if (stopping.aborted) return;
      if (!schedule.isDue(fresh)) continue;
      try {
        await trainUnderLease(fresh.targetModel, stopping);
      } catch (err) {
        // The models after it are still trained.
        if (!stopping.aborted)
          log.error({ err, model: fresh.targetModel }, 'Cannot train a model; a later round tries again');
      }
    }
  }

  async function trainUnderLease(targetModel: string, stopping: AbortSignal): Promise<void> {
    const lease = { name: `trainer:${targetModel}`, durationMs: LEASE_MS };
    await runUnderLease(dependencies, lease, async (lost) => {
      // Another process may have trained it since its fresh rows were counted.
      const fresh = await readFreshSamples(store, targetModel);
      if (fresh === undefined || !schedule.isDue(fresh)) return;
      await schedule.run(targetModel, () => train(targetModel, AbortSignal.any([stopping, lost])));
    });
  }

  const worker = createRoundWorker({ name: 'trainer', restMs: REST_MS, world, log, round: runRound });
  return {
    ...worker,
    start() {
      learning.start();
      worker.start();
    },
    async stop() {
      await worker.stop();
      learning.stop();
    },
    runRound: () => runRound(new AbortController().signal),
    requestTraining: (targetModel) => schedule.request(targetModel),
    countObserved: (targetModel) => reported.count(targetModel),
  };
}

type Training = (targetModel: string, signal: AbortSignal) => Promise<void>;

/** Trains a model in the learning process, and publishes it when it beat the served version. */
function createTraining(dependencies: TrainerDependencies, learning: BackgroundProcess): Training {
  const { store, world, log } = dependencies;
  const { dataDir, databaseUrl } = dependencies.place;
  const countTraining = createTrainingCounter(dependencies.metrics);
  return async (targetModel, signal) => {
    const order: TrainingOrder = { place: { dataDir, databaseUrl }, targetModel };
    const answer = await askWithin<TrainingOrder, TrainingAnswer>(learning, order, {
      maxMs: dependencies.maxTrainingMs ?? MAX_TRAINING_MS,
      describe: (seconds) => `Cannot train the model "${targetModel}": it took longer than ${seconds} s`,
      signal,
    });
    const { rows, lastSampleId, judgedRows, championError, challengerError } = answer;
    const outcome = await publishWinner(dependencies, targetModel, answer);
    await recordTraining(store, { targetModel, lastSampleId, nowMs: world.nowMs(), outcome });
    await dependencies.onTrained(targetModel);
    countTraining(targetModel, outcome);
    const scores = { judgedRows, championError, challengerError };
    const fields = { model: targetModel, rows, outcome, ...scores };
    if (outcome === 'untested') log.info(fields, 'Trained no model: too few recent samples are new to the served one');
    else log.info(fields, 'Trained a model on the observed requests');
  };
}

export function createTrainingCounter(metrics: Metrics): (targetModel: string, outcome: TrainingOutcome) => void {
  const trainings = new Counter({
    name: 'trivet_prediction_trainings_total',
    help: 'Trainings by outcome: published; kept (the served model stays) when the new model was not better; untested (it stays too) when too few recent samples are new to it, as after an old log was observed; overtaken when another version was promoted meanwhile, and stays.',
    labelNames: ['model', 'outcome'],
    registers: [metrics],
  });
  const labelOf = createLabelLimit();
  return (targetModel, outcome) => trainings.inc({ model: labelOf(targetModel), outcome });
}

/**
 * The names are part of the metric and of the table of trainings. `kept` and `untested`: the served version stays and the new
 * model is dropped.
 */
type TrainingOutcome = 'published' | 'kept' | 'untested' | 'overtaken';

/**
 * Another version that was promoted during the training stays served: the winner was not compared with it, and is stored without
 * promotion.
 */
async function publishWinner(
  { store, world, log }: TrainerDependencies,
  targetModel: string,
  { winner, rows: observed, championVersion, ...scores }: TrainingAnswer,
): Promise<TrainingOutcome> {
  if (winner === undefined) return scores.judgedRows === 0 ? 'untested' : 'kept';
  const { id, isPromoted } = await publishModel(store, {
    name: targetModel,
    packed: winner,
    source: { observed, ...scores },
    promotion: { version: championVersion, otherwise: 'keep' },
    reason: 'better on the newest rows',
    nowMs: world.nowMs(),
  });
  if (isPromoted) return 'published';
  log.warn({ model: id }, 'Another version was promoted during a training; it stays, and the new one is kept');
  return 'overtaken';
}

const MAX_REPORTED = 10_000;
const REPORTED_AT_ONCE = 64;

/**
 * Counts the reports of each model in this process. Models with many are checked first, so that 100,000 names with one report
 * each do not delay them.
 */
function createReportedModels() {
  const counts = new Map<string, number>();
  let newest: string | undefined;
  return {
    /** Counts a report. Beyond `MAX_REPORTED` models, the one that was reported longest ago is forgotten. */
    count(targetModel: string): void {
      const count = (counts.get(targetModel) ?? 0) + 1;
      // Moves the name to the end, unless it is there already: each deletion leaves a hole in the `Map`, and holes make it copy
      // itself.
      if (targetModel !== newest) counts.delete(targetModel);
      newest = targetModel;
      counts.set(targetModel, count);
      if (counts.size > MAX_REPORTED) counts.delete(counts.keys().next().value!);
    },
    /** The models with enough reports since they were last checked, at most as many as are checked at once. */
    listOften(): string[] {
      const often = [...counts].filter(([, count]) => count >= MIN_FRESH_ROWS).slice(0, REPORTED_AT_ONCE);
      return often.map(([targetModel]) => targetModel);
    },
    forget: (targetModel: string): void => void counts.delete(targetModel),
  };
}
