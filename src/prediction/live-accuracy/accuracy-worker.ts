/** Runs the loop that writes the live accuracy every two seconds and merges past periods. Every process therefore reads the same. */
import type { Store } from '../../database/store.ts';
import { createSweepContext } from '../../database/sweep.ts';
import type { IsClockTrusted } from '../../steady-clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import { createSweepFailures } from '../../workers/sweep-failures.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import { type ChangedCells, createAccuracyRecorder } from './accuracy-recorder.ts';
import { ACCURACY_KINDS, forgetAccuracy } from './accuracy-retention-store.ts';
import { mergeDuePeriods, saveAccuracySums, saveErrorCounts } from './accuracy-store.ts';
import type { AnsweredRow } from './answered-row.ts';

export interface AccuracyWorker extends Worker {
  observe(row: AnsweredRow): void;
  /** Writes all that is not written yet. */
  save(): Promise<void>;
}

export interface AccuracyWorkerDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly isClockTrusted: IsClockTrusted;
}

const NAME = 'live-accuracy';
const WRITE_EVERY_MS = 2000;
/** One transaction writes this many sums. Further changed sums follow in the next round. */
const MAX_SUMS_WRITTEN = 256;
/** Errors by load are many small rows, for charts: they may be this late. */
const COUNTS_EVERY_MS = 10_000;
const MAX_COUNTS_WRITTEN = 1024;
const MERGE_EVERY_MS = 60_000;

export function createAccuracyWorker(dependencies: AccuracyWorkerDependencies): AccuracyWorker {
  const { store, world, log, isClockTrusted } = dependencies;
  const process = world.uuid();
  const onFailure = createSweepFailures(dependencies, NAME, ACCURACY_KINDS);
  const recorder = createAccuracyRecorder();
  const isCountsDue = createDueCheck(world, COUNTS_EVERY_MS);
  const isMergeDue = createDueCheck(world, MERGE_EVERY_MS);

  async function saveSums(): Promise<void> {
    for (const changed of recorder.sums)
      await saveSome(changed, MAX_SUMS_WRITTEN, (cells) => saveAccuracySums(store, process, cells));
  }

  async function saveCounts(): Promise<void> {
    for (const changed of recorder.counts)
      await saveSome(changed, MAX_COUNTS_WRITTEN, (cells) => saveErrorCounts(store, process, cells));
  }

  async function save(): Promise<void> {
    while (recorder.sums.some(({ count }) => count > 0)) await saveSums();
    while (recorder.counts.some(({ count }) => count > 0)) await saveCounts();
  }

  async function tidy(signal: AbortSignal): Promise<void> {
    if (!isClockTrusted()) return;
    await forgetAccuracy(store, world.nowMs(), createSweepContext(world, onFailure, signal));
    while (!signal.aborted && (await mergeDuePeriods(store, world.nowMs())));
  }

  async function round(signal: AbortSignal): Promise<void> {
    // A clock that is ahead for a moment must end no period: begun again at 0, the period would overwrite the stored sums.
    if (isClockTrusted()) recorder.forgetPast(world.nowMs());
    await saveSums();
    if (isCountsDue()) await saveCounts();
    if (isMergeDue()) await tidy(signal);
  }

  const worker = createRoundWorker({ name: NAME, restMs: WRITE_EVERY_MS, world, log, round });
  return {
    ...worker,
    observe: (row) => recorder.observe(row),
    save,
    async stop() {
      await worker.stop();
      await save().catch((err: unknown) => log.error({ err }, 'Cannot write the last figures of live accuracy'));
    },
  };
}

async function saveSome<Cell>(
  changed: ChangedCells<Cell>,
  limit: number,
  write: (cells: readonly Cell[]) => Promise<void>,
): Promise<void> {
  const cells = changed.take(limit);
  if (cells.length === 0) return;
  try {
    await write(cells);
  } catch (error) {
    changed.putBack(cells);
    throw error;
  }
}

/** Returns a function that returns true at the first call, and then at most once in this time. */
function createDueCheck(world: Pick<World, 'monotonicMs'>, everyMs: number): () => boolean {
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = world.monotonicMs();
    if (nowMs - lastMs < everyMs) return false;
    lastMs = nowMs;
    return true;
  };
}
