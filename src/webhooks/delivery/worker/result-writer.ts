/**
 * Commits the results of attempts in batches that grow with the load, and tries a failed batch again. Results that arrive while a batch
 * is stored go into the next one. The size of a batch is limited, and so is the wait before it. A batch may be sent twice: fences ignore
 * the second. On PostgreSQL an advisory lock makes the second wait for the first, which the server may still commit after its connection
 * was lost.
 */
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import { type HookQueueTable, listSleeps, markStored } from '../hook-queues/hook-queue-table.ts';
import { listDisabled } from '../queue/hook-result-store.ts';
import { createOriginWakes, type OriginWakes, type OriginWakesDependencies } from './origin-wakes.ts';
import {
  addResults,
  type Batch,
  batchStatements,
  countTakenChanges,
  createResultQueue,
  hasResults,
  type ResultQueue,
  type Results,
  takeBatch,
} from './result-batch.ts';
import { storeUntilDone } from './store-until-done.ts';
import { createWakeSignal, type WakeSignal } from './wake-signal.ts';

/** The time between batches. It collects several results, since the cost of a transaction hardly depends on their number. */
const BATCH_EVERY_MS = 50;
/** With this many results the next batch starts at once. */
const FULL_BATCH = 64;
/** How often the last responses of hooks are stored: four a second are enough for a busy hook. */
const REPORTS_EVERY_MS = 250;

export interface ResultWriter {
  /** Queues results; they are stored soon. */
  add(results: Results): void;
  /** Requests a batch even without results, since a hook queue may sleep. */
  wake(): void;
  /** Resolves when all results that were added before are stored; later ones do not make it wait longer. */
  flush(): Promise<void>;
  /** Gives up storing the remaining results, when the process has to stop. */
  abandon(): void;
  /** Stops waking hook queues of origins that can be connected to again; the others become due when their pauses end. */
  stopWaking(): Promise<void>;
}

export interface ResultWriterDependencies extends OriginWakesDependencies {
  /** This worker, which must own the shards of the results (fencing). */
  readonly workerId: string;
  readonly table: HookQueueTable;
  /** Wakes the dispatch loop, which may send more when results are stored. */
  readonly signal: WakeSignal;
}

interface WriterState {
  readonly queue: ResultQueue;
  readonly originWakes: OriginWakes;
  readonly abandoning: AbortController;
  readonly reportTurn: ReportTurn;
  /** Ends the wait for more results. */
  readonly batchSignal: WakeSignal;
  readonly flushes: Set<Flush>;
  /** The total numbers of results that were added and stored. */
  added: number;
  stored: number;
  isRunning: boolean;
  isRequested: boolean;
  lastBatchMs: number;
}

/** A waiting call of `flush`. It ends once its results and changes are stored, and a batch has stored the reports. */
interface Flush {
  /** The number of results that have to be stored. */
  readonly untilStored: number;
  /** The number of changes that have to be taken. */
  readonly untilChanged: number;
  /** Whether a batch has begun since the call; such a batch takes all reports. */
  hasBatch: boolean;
  readonly end: () => void;
}

export function createResultWriter(dependencies: ResultWriterDependencies): ResultWriter {
  const state: WriterState = {
    queue: createResultQueue(),
    originWakes: createOriginWakes(dependencies),
    abandoning: new AbortController(),
    reportTurn: createReportTurn(dependencies.world, () => wake()),
    batchSignal: createWakeSignal(),
    flushes: new Set(),
    added: 0,
    stored: 0,
    isRunning: false,
    isRequested: false,
    lastBatchMs: Number.NEGATIVE_INFINITY,
  };
  const { queue, abandoning } = state;
  const wake = (): void => {
    state.isRequested = true;
    startRun(dependencies, state);
  };
  return {
    add: (results) => {
      addResults(queue, results);
      if (results.attempt !== undefined) state.added += 1;
      if (isFull(queue)) state.batchSignal.wake();
      if (hasResults(queue)) startRun(dependencies, state);
    },
    wake,
    flush: async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      state.flushes.add({
        untilStored: state.added,
        untilChanged: queue.addedChanges,
        hasBatch: false,
        end: resolve,
      });
      state.reportTurn.cancel();
      state.batchSignal.wake();
      startRun(dependencies, state);
      await promise;
    },
    abandon: () => abandoning.abort(),
    stopWaking: () => state.originWakes.stop(),
  };
}

function isFull({ attemptResults, changes }: ResultQueue): boolean {
  return attemptResults.length >= FULL_BATCH || changes.length >= FULL_BATCH;
}

/** Starts a run, unless one is under way, which takes the new results too. */
function startRun(dependencies: ResultWriterDependencies, state: WriterState): void {
  if (state.isRunning) return;
  state.isRunning = true;
  void Promise.resolve().then(() => runBatches(dependencies, state));
}

async function runBatches(dependencies: ResultWriterDependencies, state: WriterState): Promise<void> {
  do {
    if (state.flushes.size === 0) await waitForMore(dependencies.world, state);
    state.batchSignal.clear();
    state.isRequested = false;
    await storeBatch(dependencies, state);
  } while (hasResults(state.queue) || state.isRequested || state.flushes.size > 0);
  // No wait since the last check of the queue, so no result is missed: a later one starts a run.
  state.isRunning = false;
}

async function storeBatch(dependencies: ResultWriterDependencies, state: WriterState): Promise<void> {
  const { queue, originWakes, flushes, reportTurn, abandoning } = state;
  // With a flush, reports are stored at once.
  const withReports = queue.reports.size > 0 && (flushes.size > 0 || reportTurn.take());
  const batch = takeBatch(queue, { withReports });
  for (const flush of flushes) flush.hasBatch = true;
  try {
    await commitBatch(dependencies, batch, abandoning.signal);
    for (const change of batch.changes) if (change.kind === 'wake origin') originWakes.add(change.origin);
  } catch (error) {
    dependencies.log.error({ err: error }, 'Cannot store a batch of delivery results');
  }
  state.stored += batch.attemptResults.length;
  endFlushes(state);
}

function endFlushes({ queue, flushes, stored }: WriterState): void {
  const changed = countTakenChanges(queue);
  for (const flush of flushes) {
    if (!flush.hasBatch || stored < flush.untilStored || changed < flush.untilChanged) continue;
    flushes.delete(flush);
    flush.end();
  }
}

async function waitForMore(world: World, state: WriterState): Promise<void> {
  const waitMs = state.lastBatchMs + BATCH_EVERY_MS - world.monotonicMs();
  if (waitMs > 0 && !isFull(state.queue)) await state.batchSignal.wait(waitMs);
  state.lastBatchMs = world.monotonicMs();
}

interface ReportTurn {
  /** Whether the last responses of hooks may be stored now. */
  take(): boolean;
  cancel(): void;
}

/** Limits how often reports are stored. If `take()` comes too early, `onTurn` is called when the time has come. */
function createReportTurn(world: World, onTurn: () => void): ReportTurn {
  let lastMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  const endWait = (): void => {
    timer = undefined;
    onTurn();
  };
  return {
    cancel: () => {
      clearTimeout(timer);
      timer = undefined;
    },
    take: () => {
      const waitMs = lastMs + REPORTS_EVERY_MS - world.monotonicMs();
      if (waitMs > 0) timer ??= setTimeout(endWait, waitMs);
      else lastMs = world.monotonicMs();
      return waitMs <= 0;
    },
  };
}

/** Stores a batch together with the hook queues that sleep after it, then updates the table and wakes the dispatch loop. */
async function commitBatch(
  dependencies: ResultWriterDependencies,
  batch: Batch,
  abandoned: AbortSignal,
): Promise<void> {
  const { world, workerId, table } = dependencies;
  const sleeps = listSleeps(table, batch.attemptResults);
  const transaction = batchStatements(batch, { workerId, nowMs: world.nowMs(), sleeps });
  const turn = `results of ${workerId}`;
  const write = (store: Store) => store.writeAll(transaction, { inOneTrip: true, turn });
  const options = { what: 'results of deliveries', abandoned, retryAfter: 'any error' } as const;
  const answers = transaction.length > 0 ? await storeUntilDone(dependencies, write, options) : undefined;
  markStored(table, batch.attemptResults, sleeps);
  for (const disabled of listDisabled(transaction, answers ?? []))
    dependencies.log.info(disabled, 'A webhook was disabled');
  // A hook queue that has moved may be due.
  if (batch.changes.some(({ kind }) => kind === 'move')) dependencies.scan.request();
  if (table.scheduler.waiting > 0) dependencies.signal.wake();
}
