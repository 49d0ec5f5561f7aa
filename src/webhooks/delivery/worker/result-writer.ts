/**
 * Commits the results of attempts in batches that grow with the load, and tries a failed batch again. What arrives while a
 * batch is stored goes into the next one, in one transaction. A batch may be sent twice: fences ignore the
 * second. On PostgreSQL an advisory lock makes the second wait for the first, which the server may still commit after its connection
 * broke.
 */
import type { Store } from '../../../database/store.ts';
import { describeError } from '../../../errors.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { World } from '../../../world.ts';
import { wakeOrigin } from '../queue/delivery-restart-store.ts';
import type { HookQueueChange } from '../queue/hook-queue-change-store.ts';
import { listDisabled } from '../queue/hook-result-store.ts';
import type { DueScan } from './due-scan.ts';
import { type HookQueueTable, listSleeps, markStored } from './hook-queue-table.ts';
import {
  addResults,
  type Batch,
  batchStatements,
  createResultQueue,
  hasResults,
  type ResultQueue,
  type Results,
  takeBatch,
} from './result-batch.ts';
import { createWakeSignal, type WakeSignal } from './wake-signal.ts';

/** The pause between batches. It lets several results gather, since the cost of a transaction hardly depends on their number. */
const BATCH_EVERY_MS = 50;
/** With this many results the next batch starts at once. */
const FULL_BATCH = 64;
const RETRY_MS = 100;
const MAX_RETRY_MS = 2000;
/** How often the last responses of hooks are stored: four a second are enough for a busy hook. */
const REPORTS_EVERY_MS = 250;

export interface ResultWriter {
  /** Queues results; they are stored soon. */
  add(results: Results): void;
  /** Requests a batch even without results, since a hook queue may sleep. */
  wake(): void;
  /** Resolves when all results that were added before are stored; later ones do not make it wait longer. */
  flush(): Promise<void>;
  /** Ends without storing the rest, when the process has to stop. */
  abandon(): void;
}

export interface ResultWriterDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  /** The owner of the shards, by which results are fenced. */
  readonly workerId: string;
  readonly table: HookQueueTable;
  readonly scan: Pick<DueScan, 'request'>;
  /** Wakes the dispatch loop, which may send more when results are stored. */
  readonly signal: WakeSignal;
}

interface WriterState {
  readonly queue: ResultQueue;
  readonly abandoning: AbortController;
  readonly reportTurn: ReportTurn;
  /** Ends the wait for more results. */
  readonly batchSignal: WakeSignal;
  readonly flushes: Set<Flush>;
  /** Results of attempts that were added, and those of them that were stored, ever. */
  added: number;
  stored: number;
  isRunning: boolean;
  isRequested: boolean;
  lastBatchMs: number;
}

/** A call of `flush` that waits: for its results, and for a batch that takes the changes and reports. */
interface Flush {
  /** So many results of attempts have to be stored. */
  readonly untilStored: number;
  /** A batch has begun after the call: it takes all changes and reports. */
  hasBatch: boolean;
  readonly end: () => void;
}

export function createResultWriter(dependencies: ResultWriterDependencies): ResultWriter {
  const state: WriterState = {
    queue: createResultQueue(),
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
      if (queue.attemptResults.length >= FULL_BATCH) state.batchSignal.wake();
      if (hasResults(queue)) startRun(dependencies, state);
    },
    wake,
    flush: async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      state.flushes.add({ untilStored: state.added, hasBatch: false, end: resolve });
      state.reportTurn.cancel();
      state.batchSignal.wake();
      startRun(dependencies, state);
      await promise;
    },
    abandon: () => abandoning.abort(),
  };
}

/** Starts a run unless one is under way, which then takes the new results too. */
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
  // Without a wait after the last look: what comes now starts a run.
  state.isRunning = false;
}

async function storeBatch(dependencies: ResultWriterDependencies, state: WriterState): Promise<void> {
  const { queue, flushes, reportTurn, abandoning } = state;
  // A flush does not wait for the turn of the reports.
  const withReports = queue.reports.size > 0 && (flushes.size > 0 || reportTurn.take());
  const batch = takeBatch(queue, { withReports });
  for (const flush of flushes) flush.hasBatch = true;
  try {
    await commitBatch(dependencies, batch, abandoning.signal);
  } catch (error) {
    dependencies.log.error({ err: error }, 'Cannot store a batch of delivery results');
  }
  state.stored += batch.attemptResults.length;
  endFlushes(state);
}

function endFlushes({ flushes, stored }: WriterState): void {
  for (const flush of flushes) {
    if (!flush.hasBatch || stored < flush.untilStored) continue;
    flushes.delete(flush);
    flush.end();
  }
}

async function waitForMore(world: World, state: WriterState): Promise<void> {
  const waitMs = state.lastBatchMs + BATCH_EVERY_MS - world.monotonicMs();
  if (waitMs > 0 && state.queue.attemptResults.length < FULL_BATCH) await state.batchSignal.wait(waitMs);
  state.lastBatchMs = world.monotonicMs();
}

interface ReportTurn {
  /** Whether the last responses of hooks may be stored now. */
  take(): boolean;
  cancel(): void;
}

/** If it is too early for a turn, `onTurn` is called when it is time. */
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

/** Stores a batch with the hook queues that sleep after it, and then tells the table and the dispatch loop. */
async function commitBatch(
  dependencies: ResultWriterDependencies,
  batch: Batch,
  abandoned: AbortSignal,
): Promise<void> {
  const { world, workerId, table } = dependencies;
  const sleeps = listSleeps(table, batch.attemptResults);
  const transaction = batchStatements(batch, { workerId, nowMs: world.nowMs(), sleeps });
  const origins = batch.changes.filter((change) => change.kind === 'wake origin').map(({ origin }) => origin);
  const nowMs = world.nowMs();
  const turn = `results of ${workerId}`;
  for (const origin of origins)
    await storeUntilDone(dependencies, (store) => wakeOrigin(store, origin, nowMs), abandoned);
  const write = (store: Store) => store.writeAll(transaction, { inOneTrip: true, turn });
  const answers = transaction.length > 0 ? await storeUntilDone(dependencies, write, abandoned) : undefined;
  markStored(table, batch.attemptResults, sleeps);
  for (const disabled of listDisabled(transaction, answers ?? []))
    dependencies.log.info(disabled, 'A webhook was disabled');
  if (batch.changes.some(isDueNow)) dependencies.scan.request();
  if (table.scheduler.waiting > 0) dependencies.signal.wake();
}

/** The answer; undefined when it was abandoned. */
async function storeUntilDone<Answer>(
  { store, world, log }: ResultWriterDependencies,
  write: (store: Store) => Promise<Answer>,
  abandoned: AbortSignal,
): Promise<Answer | undefined> {
  let hasFailed = false;
  for (let waitMs = RETRY_MS; !abandoned.aborted; waitMs = Math.min(waitMs * 2, MAX_RETRY_MS)) {
    try {
      const answer = await write(store);
      if (hasFailed) log.warn('Results of deliveries are stored again');
      return answer;
    } catch (error) {
      // Logged once, not at each retry of an outage.
      if (!hasFailed) log.warn({ reason: describeError(error) }, 'Cannot store results of deliveries; trying again');
      hasFailed = true;
      await world.sleep(waitMs);
    }
  }
  return undefined;
}

/** True for a change that may make hook queues due. */
function isDueNow({ kind }: HookQueueChange): boolean {
  return kind === 'wake origin' || kind === 'move';
}
