/**
 * Keeps the live models of all processes in step: applies what other processes have learned several times a second, publishes
 * what this process has learned once a second, and saves the agreed state for a restart.
 */
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Store } from '../../database/store.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import type { Forecast } from '../online/live-model.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { listLiveStates, listSavedStates, saveLiveStates } from './live-state-store.ts';
import { type AppliedRow, createSharedLearning, type SharedLearning, type TimeToLearn } from './shared-learning.ts';
import { deleteLogRows, readLogEnds } from './shared-log-store.ts';

export interface SharingWorker extends Worker {
  /** Restores the saved state, and applies the rows of the log after it. Must be called after the models are loaded. */
  restore(): Promise<void>;
  /** Call before the live model observes the time. */
  beforeObserve(targetModel: string, forecast: Forecast, time: TimeToLearn): void;
}

export interface SharingDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly predictor: SwappablePredictor;
}

const REST_MS = 300;
/** How often this process appends a row to the log. */
const APPEND_EVERY_MS = 1000;
/** How often the state is saved. The log has what was learned after that. */
const SAVE_EVERY_MS = 10_000;
/** Most states in one transaction, since each may be a megabyte. */
const STATES_AT_ONCE = 16;
/** Rows are kept for this long. A process that was cut off for longer begins again with the saved state. */
const KEPT_MS = 120_000;

export function createSharingWorker(dependencies: SharingDependencies): SharingWorker {
  const { store, world, log } = dependencies;
  const learning = createSharedLearning(dependencies);
  const measure = createSharingMetrics(dependencies.metrics, learning);
  const saver = createStateSaver(dependencies, learning);
  let appendedMs = Number.NEGATIVE_INFINITY;

  async function restore(): Promise<void> {
    const { first } = await readLogEnds(store);
    learning.restore(await listLiveStates(store), first - 1);
    await applyNewRows();
  }

  async function applyNewRows(): Promise<void> {
    for await (const applied of learning.applyNewRows()) {
      measure(applied);
      saver.markChanged(applied.targetModels);
    }
  }

  /** True if rows were deleted that this process has not applied, or the database was replaced by an older copy. */
  async function isCutOff(): Promise<boolean> {
    const { first, last } = await readLogEnds(store);
    return learning.sequence + 1 < first || learning.sequence > last;
  }

  async function append(): Promise<void> {
    if (world.monotonicMs() - appendedMs < APPEND_EVERY_MS) return;
    if (!(await learning.append())) return;
    appendedMs = world.monotonicMs();
    await applyNewRows();
  }

  async function round(): Promise<void> {
    if (await isCutOff()) {
      log.warn({ sequence: learning.sequence }, 'Begins again with what other processes have learned');
      await restore();
    }
    await applyNewRows();
    await append();
    await saver.saveDue();
  }

  const worker = createRoundWorker({ name: 'shared-learning', restMs: REST_MS, world, log, round });
  return {
    ...worker,
    restore,
    beforeObserve: (targetModel, forecast, time) => learning.beforeObserve(targetModel, forecast, time),
    async stop() {
      await worker.stop();
      const finish = async (): Promise<void> => {
        await applyNewRows();
        while (await learning.append()) await applyNewRows();
        await saver.save(0);
      };
      await finish().catch((err: unknown) => log.error({ err }, 'Failed to save what was learned last'));
    },
  };
}

/** Saves the agreed state for a restart, and deletes the rows of the log that every process has applied. */
function createStateSaver({ store, world }: SharingDependencies, learning: SharedLearning) {
  const changed = new Set<string>();
  let savedMs = world.monotonicMs();

  /** Saves the models that changed, except those that another process has saved within `youngerMs`. */
  async function save(youngerMs: number): Promise<void> {
    const nowMs = world.nowMs();
    savedMs = world.monotonicMs();
    const saved = await listSavedStates(store);
    const late = [...changed].filter((name) => (saved.get(name)?.savedAtMs ?? 0) <= nowMs - youngerMs);
    for (let start = 0; start < late.length; start += STATES_AT_ONCE) {
      const names = late.slice(start, start + STATES_AT_ONCE);
      await saveLiveStates(store, learning.save(names), nowMs);
      for (const name of names) changed.delete(name);
    }
    const savedTo = Array.from(changed, (name) => saved.get(name)?.sequence ?? 0);
    await deleteLogRows(store, Math.min(learning.sequence, ...savedTo), nowMs - KEPT_MS);
  }

  return {
    save,
    markChanged(names: readonly string[]): void {
      for (const name of names) changed.add(name);
    },
    async saveDue(): Promise<void> {
      if (world.monotonicMs() - savedMs >= SAVE_EVERY_MS) await save(SAVE_EVERY_MS / 2);
    },
  };
}

/** Returns the function that counts a row. */
function createSharingMetrics(metrics: Metrics, learning: SharedLearning): (row: AppliedRow) => void {
  const registers = [metrics];
  new Gauge({
    name: 'trivet_prediction_shared_sequence',
    help: 'The last row of the log of what processes have learned that this process has taken up. Processes with the same number and nothing pending answer alike.',
    registers,
    collect() {
      this.set(learning.sequence);
    },
  });
  new Gauge({
    name: 'trivet_prediction_shared_pending_groups',
    help: 'Groups of sums with reports that this process received and other processes do not know yet.',
    registers,
    collect() {
      this.set(learning.countPending());
    },
  });
  const rows = new Counter({
    name: 'trivet_prediction_shared_rows_total',
    help: 'Rows of the log of what processes have learned, by whether this process wrote or only read them.',
    labelNames: ['writer'],
    registers,
  });
  const bytes = new Counter({
    name: 'trivet_prediction_shared_bytes_total',
    help: 'Bytes of these rows.',
    labelNames: ['writer'],
    registers,
  });
  const delays = new Histogram({
    name: 'trivet_prediction_shared_delay_seconds',
    help: 'From the first report of a row until this process took the row up, by the clocks of both processes.',
    labelNames: ['writer'],
    buckets: [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 5, 10, 30],
    registers,
  });
  return ({ isOwn, bytes: size, delayMs }) => {
    const labels = { writer: isOwn ? 'self' : 'other' };
    rows.inc(labels);
    bytes.inc(labels, size);
    delays.observe(labels, delayMs / 1000);
  };
}
