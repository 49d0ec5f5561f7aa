/**
 * The loop that commits. Everything that came together while the last batch was stored goes into the next one, in one unit,
 * so batches grow with the load. A batch that fails is tried again as it is; its fences make that safe.
 */
import type { Step, Store } from '../../../database/store.ts';
import { describeError } from '../../../errors.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { World } from '../../../world.ts';
import type { EndpointChange } from '../queue/endpoint-change-store.ts';
import type { DueScan } from './due-scan.ts';
import { type EndpointTable, listRests, markStored } from './endpoint-table.ts';
import {
  addResults,
  type Batch,
  batchSteps,
  createResultQueue,
  hasResults,
  type Results,
  takeBatch,
} from './result-batch.ts';
import type { WakeSignal } from './wake-signal.ts';

/** Under load, so that a batch has several results: the cost of a unit hardly depends on how many. */
const BATCH_EVERY_MS = 4;
const FULL_BATCH = 64;
const RETRY_MS = 100;
const MAX_RETRY_MS = 2000;
/** Of a busy hook the last answer of every quarter second is enough. */
const REPORTS_EVERY_MS = 250;

export interface ResultWriter {
  /** Queues results; they are stored soon. */
  add(results: Results): void;
  /** Asks for a batch although there may be no result: some endpoint may rest. */
  wake(): void;
  /** Resolves when all results are stored. */
  flush(): Promise<void>;
  /** Gives up storing, at the end. */
  abandon(): void;
}

export interface ResultWriterParts {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  /** Of the shards that results are fenced by. */
  readonly owner: string;
  readonly table: EndpointTable;
  readonly scan: Pick<DueScan, 'request'>;
  /** Of the dispatch loop, which may send more when results are stored. */
  readonly signal: WakeSignal;
}

export function createResultWriter(parts: ResultWriterParts): ResultWriter {
  const { world, log } = parts;
  const queue = createResultQueue();
  const abandoning = new AbortController();
  const turn = createReportTurn(world, () => wake());
  let running: Promise<void> | undefined;
  let isRequested = false;
  let lastBatchMs = Number.NEGATIVE_INFINITY;

  const waitForMore = async (): Promise<void> => {
    const waitMs = lastBatchMs + BATCH_EVERY_MS - world.monotonicMs();
    if (waitMs > 0 && queue.settlements.length < FULL_BATCH) await world.sleep(waitMs);
    lastBatchMs = world.monotonicMs();
  };
  const run = async (isLast: boolean): Promise<void> => {
    do {
      if (!isLast) await waitForMore();
      isRequested = false;
      const withReports = queue.reports.size > 0 && (isLast || turn.take());
      await commitBatch(parts, takeBatch(queue, { withReports }), abandoning.signal);
    } while (hasResults(queue) || isRequested);
  };
  const start = (isLast = false): Promise<void> => {
    running ??= Promise.resolve()
      .then(() => run(isLast))
      .catch((error: unknown) => log.error({ err: error }, 'Failed to store a batch of delivery results'))
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  const wake = (): void => {
    isRequested = true;
    void start();
  };

  return {
    add: (results) => {
      addResults(queue, results);
      if (hasResults(queue)) void start();
    },
    wake,
    flush: async () => {
      do {
        await running;
        turn.cancel();
        await start(true);
      } while (queue.reports.size > 0 && !abandoning.signal.aborted);
    },
    abandon: () => abandoning.abort(),
  };
}

/** Whether the last answers of hooks may be stored now; when it is too early, `onTurn` is called in time. */
function createReportTurn(world: World, onTurn: () => void) {
  let lastMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  const cancel = (): void => {
    clearTimeout(timer);
    timer = undefined;
  };
  return {
    cancel,
    take: (): boolean => {
      const waitMs = lastMs + REPORTS_EVERY_MS - world.monotonicMs();
      if (waitMs <= 0) {
        lastMs = world.monotonicMs();
        return true;
      }
      timer ??= setTimeout(() => {
        timer = undefined;
        onTurn();
      }, waitMs);
      return false;
    },
  };
}

/** Stores a batch with the endpoints that rest after it, and then tells the table and the dispatch loop. */
async function commitBatch(parts: ResultWriterParts, batch: Batch, abandoned: AbortSignal): Promise<void> {
  const { world, owner, table } = parts;
  const rests = listRests(table, batch.settlements);
  const unit = batchSteps(batch, { owner, nowMs: world.nowMs(), rests });
  if (unit.length > 0) await storeUntilDone(parts, unit, abandoned);
  markStored(table, batch.settlements, rests);
  logDisabled(parts.log, batch.changes);
  if (batch.changes.some(isDueNow)) parts.scan.request();
  parts.signal.wake();
}

async function storeUntilDone(
  { store, world, log }: ResultWriterParts,
  unit: readonly Step[],
  abandoned: AbortSignal,
): Promise<void> {
  for (let waitMs = RETRY_MS; !abandoned.aborted; waitMs = Math.min(waitMs * 2, MAX_RETRY_MS)) {
    try {
      await store.writeAll(unit);
      return;
    } catch (error) {
      log.warn({ reason: describeError(error) }, 'Failed to store results of deliveries; trying again');
      await world.sleep(waitMs);
    }
  }
}

/** Endpoints that were not due may be due after it. */
function isDueNow({ kind }: EndpointChange): boolean {
  return kind === 'wake origin' || kind === 'move';
}

function logDisabled(log: Log, changes: readonly EndpointChange[]): void {
  for (const change of changes) {
    if (change.kind !== 'disable') continue;
    const { hookId, reason } = change;
    log.info({ hookId, reason }, 'A webhook was disabled');
  }
}
