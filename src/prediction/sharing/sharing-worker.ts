/**
 * Runs the loop that keeps the live models of all processes in step. It applies what other processes have learned several times
 * a second, appends what this process has learned to the log once a second, and saves the agreed state for a restart
 * (`state-saver.ts`).
 */
import type { Store } from '../../database/store.ts';
import { describeError, isFailure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import type { Forecast } from '../online/forecasts.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { listLiveStates } from './live-state-store.ts';
import { createSharedLearning, type SharedLearning, type TimeToLearn } from './shared-learning.ts';
import { readLogEnds } from './shared-log-store.ts';
import { createSharingMetrics } from './sharing-metrics.ts';
import { createStateSaver } from './state-saver.ts';

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

export function createSharingWorker(dependencies: SharingDependencies): SharingWorker {
  const { store, world, log } = dependencies;
  const learning = createSharedLearning(dependencies);
  const measure = createSharingMetrics(dependencies.metrics, learning);
  const saver = createStateSaver(dependencies, learning);
  let appendedMs = Number.NEGATIVE_INFINITY;
  const appendOrWarn = createAppend(log);

  async function restore(): Promise<void> {
    const { first } = await readLogEnds(store);
    await learning.restore(await listLiveStates(store), first - 1);
    await applyNewRows();
  }

  async function beginAgain(): Promise<void> {
    log.warn({ sequence: learning.sequence }, 'Restoring the saved live state: rows of the shared log are missing');
    await restore();
  }

  /** Rows may be deleted before they are applied, since a process may be suspended for longer than they are kept. */
  async function applyNewRows(): Promise<void> {
    for await (const applied of learning.applyNewRows()) {
      if (applied.failure === undefined) measure(applied);
      else
        log.error(
          { err: applied.failure, sequence: learning.sequence },
          'Skipped a row of the shared log that cannot be applied',
        );
      saver.markChanged(applied.targetModels);
    }
    if (learning.hasLostRows) await beginAgain();
  }

  /** True if rows were deleted that this process has not applied, or the database was replaced by an older copy. */
  async function isCutOff(): Promise<boolean> {
    const { first, last } = await readLogEnds(store);
    return learning.sequence + 1 < first || learning.sequence > last;
  }

  async function append(): Promise<void> {
    if (world.monotonicMs() - appendedMs < APPEND_EVERY_MS) return;
    if (!(await appendOrWarn(learning))) return;
    appendedMs = world.monotonicMs();
    await applyNewRows();
  }

  async function round(): Promise<void> {
    if (await isCutOff()) await beginAgain();
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
      await finish().catch((err: unknown) => log.error({ err }, 'Cannot save what was learned since the last save'));
    },
  };
}

/** Returns a function that appends a row. A row whose append failed is kept, and the next round appends it; it is never stored twice. */
function createAppend(log: Log): (learning: SharedLearning) => Promise<boolean> {
  let isBroken = false;
  return async (learning) => {
    try {
      const hasAppended = await learning.append();
      isBroken = false;
      return hasAppended;
    } catch (error) {
      if (!isFailure(error) || error.code !== 'unavailable') throw error;
      const reason = describeError(error);
      if (!isBroken) log.warn({ reason }, 'Cannot share what was learned; it is kept, and the next rounds try again');
      isBroken = true;
      return false;
    }
  };
}
