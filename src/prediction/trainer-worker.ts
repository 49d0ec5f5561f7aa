/**
 * Learns again when enough was observed, when time has passed or when the model drifts, whichever process observed it.
 * One process at a time trains a model (a lease), in a thread; what it publishes is served everywhere.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { Worker as Thread } from 'node:worker_threads';
import { Counter } from 'prom-client';
import { runUnderLease } from '../database/leases.ts';
import type { Store } from '../database/store.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createRoundWorker } from '../workers/round-worker.ts';
import type { Worker } from '../workers/worker.ts';
import type { World } from '../world.ts';
import { listPromotedModels, readModelFile } from './model-store.ts';
import { appendObservation, createObservationTable, type ObservationTable } from './observation-table.ts';
import { publishModel } from './publish-model.ts';
import { type FreshSamples, listFreshSamples, readSamplePages, recordTraining } from './sample-store.ts';
import type { TrainingAnswer, TrainingOrder } from './trainer-thread.ts';

export interface TrainerParts {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly refitRows: number;
  readonly refitSeconds: number;
  /** Called after each training: what was learned from may be thinned. */
  readonly onTrained: (targetModel: string) => Promise<void>;
}

export interface Trainer extends Worker {
  /** Learns this model again soon: its errors have moved. */
  hasten(targetModel: string): void;
  /** One look at every model; what the background does again and again. */
  runRound(): Promise<void>;
}

const REST_MS = 2000;
/** After a crash, learning goes on when it has run out. */
const LEASE_MS = 15_000;
/** Fewer fresh rows than this never cause a training. */
const MIN_FRESH_ROWS = 50;
const MAX_ROWS = 50_000;

export function createTrainer(parts: TrainerParts): Trainer {
  const { store, world, log } = parts;
  const hastened = new Set<string>();
  const trainings = new Counter({
    name: 'trivet_prediction_trainings_total',
    help: 'Trainings by outcome: published, or kept when the new model was not better than the served one.',
    labelNames: ['model', 'outcome'],
    registers: [parts.metrics],
  });

  function isDue({ targetModel, count, lastTrainingMs }: FreshSamples): boolean {
    if (count < MIN_FRESH_ROWS) return false;
    if (lastTrainingMs === undefined || count >= parts.refitRows || hastened.has(targetModel)) return true;
    return world.nowMs() - lastTrainingMs >= parts.refitSeconds * 1000;
  }

  async function runRound(stopping: AbortSignal): Promise<void> {
    for (const fresh of await listFreshSamples(store)) {
      if (stopping.aborted) return;
      const lease = { name: `trainer:${fresh.targetModel}`, durationMs: LEASE_MS };
      if (isDue(fresh)) await runUnderLease(parts, lease, (lost) => train(fresh, AbortSignal.any([stopping, lost])));
    }
  }

  async function train({ targetModel, lastId }: FreshSamples, signal: AbortSignal): Promise<void> {
    hastened.delete(targetModel);
    const table = await readTable(store, targetModel);
    const promoted = (await listPromotedModels(store)).find((model) => model.name === targetModel);
    const champion = promoted && (await readModelFile(store, targetModel, promoted.version));
    // The thread takes the columns along.
    const rows = table.count;
    const { winner, ...scores } = await runThread({ table, champion }, signal);
    const outcome = winner === undefined ? 'kept' : 'published';
    if (winner !== undefined)
      await publishModel(store, {
        name: targetModel,
        packed: winner,
        source: { observed: rows, ...scores },
        promotion: 'promote',
        reason: 'better on the newest rows',
        nowMs: world.nowMs(),
      });
    await recordTraining(store, { targetModel, lastSampleId: lastId, nowMs: world.nowMs(), outcome });
    await parts.onTrained(targetModel);
    trainings.inc({ model: targetModel, outcome });
    log.info({ model: targetModel, rows, outcome, ...scores }, 'learned from what was observed');
  }

  return {
    ...createRoundWorker({ name: 'trainer', restMs: REST_MS, world, log, round: runRound }),
    runRound: () => runRound(new AbortController().signal),
    hasten: (targetModel) => void hastened.add(targetModel),
  };
}

/** The newest samples, oldest first; calls are answered between two pages. */
async function readTable(store: Store, targetModel: string): Promise<ObservationTable> {
  const table = createObservationTable();
  for await (const page of readSamplePages(store, targetModel, MAX_ROWS)) {
    for (const { observation } of page) appendObservation(table, observation);
    await yieldToCalls();
  }
  return table;
}

/** Ends the thread when the signal is aborted: a training can be done again. */
async function runThread(order: TrainingOrder, signal: AbortSignal): Promise<TrainingAnswer> {
  const columns = Object.values(order.table).filter((column) => ArrayBuffer.isView(column));
  const thread = new Thread(new URL('./trainer-thread.ts', import.meta.url), {
    workerData: order,
    transferList: columns.map((column) => column.buffer as ArrayBuffer),
  });
  const abort = () => void thread.terminate();
  signal.addEventListener('abort', abort);
  try {
    return await new Promise<TrainingAnswer>((resolve, reject) => {
      thread.once('message', resolve);
      thread.once('error', reject);
      thread.once('exit', (code) => reject(new Error(`The training ended without an answer, exit code ${code}`)));
    });
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
