/**
 * Stores results: everything that has come together while the last batch was stored goes into the next one, in one unit.
 * So the batches grow with the load by themselves. A batch that fails is tried again as it is; its fences make that safe.
 */
import type { Step, Store } from '../../../database/store.ts';
import { describeError } from '../../../errors.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { World } from '../../../world.ts';
import { describeResult } from '../queue/attempt-record.ts';
import {
  disableHookStep,
  type EndpointChange,
  endpointSteps,
  type HookResult,
  hookResultSteps,
  type Rest,
  restSteps,
  type Settlement,
  settleSteps,
} from '../queue/settlement-store.ts';
import type { SendReport } from '../send/send-report.ts';

const MAX_BATCH = 256;
/** Under load, so that a batch has several to store: what a unit costs hardly depends on how many. */
const BATCH_EVERY_MS = 4;
const FULL_BATCH = 64;
const RETRY_MS = 100;
const MAX_RETRY_MS = 2000;
const RESULT_EVERY_MS = 250;

export interface Disabling {
  readonly hookId: number;
  readonly reason: string;
}

export interface Settler {
  settle(settlement: Settlement, report: SendReport): void;
  change(change: EndpointChange): void;
  disable(disabling: Disabling): void;
  /** Other steps that may go with a batch. */
  also(...steps: Step[]): void;
  /** Asks for a batch although there may be no result: some endpoint may go to rest. */
  nudge(): void;
  /** Resolves when all that was given is stored. */
  flush(): Promise<void>;
  /** Gives up what cannot be stored, at the end. */
  abandon(): void;
}

export interface SettlerParts {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly owner: string;
  /** Which endpoints may rest once these deliveries are settled. */
  readonly chooseRests: (settled: readonly Settlement[]) => readonly Rest[];
  readonly onStored: (settled: readonly Settlement[], rests: readonly Rest[]) => void;
}

/** From the front, no two of one delivery: those have to be stored one after the other. */
function takeBatch(waiting: Settlement[]): Settlement[] {
  const ids = new Set<number>();
  for (const { deliveryId } of waiting.slice(0, MAX_BATCH)) {
    if (ids.has(deliveryId)) break;
    ids.add(deliveryId);
  }
  return waiting.splice(0, ids.size);
}

export function createSettler(parts: SettlerParts): Settler {
  const { store, world, log, owner } = parts;
  const settlements: Settlement[] = [];
  const changes = new Map<number, EndpointChange>();
  /** The last report of each hook, by its id. */
  const reports = new Map<number, SendReport>();
  const steps: Step[] = [];
  let running: Promise<void> | undefined;
  let isNudged = false;
  let isAbandoned = false;
  let lastBatchMs = Number.NEGATIVE_INFINITY;
  let lastResultsMs = Number.NEGATIVE_INFINITY;
  let resultTimer: NodeJS.Timeout | undefined;

  // Of a busy hook the last answer of every quarter second is enough.
  const takeResults = (isLast: boolean): HookResult[] => {
    if (reports.size === 0) return [];
    const waitMs = lastResultsMs + RESULT_EVERY_MS - world.monotonicMs();
    if (waitMs > 0 && !isLast) {
      resultTimer ??= setTimeout(() => {
        resultTimer = undefined;
        nudge();
      }, waitMs);
      return [];
    }
    lastResultsMs = world.monotonicMs();
    const taken = [...reports].sort(([a], [b]) => a - b);
    reports.clear();
    return taken.map(([hookId, report]) => ({ hookId, result: describeResult(report), status: report.status }));
  };

  const storeBatch = async (isLast: boolean): Promise<void> => {
    const batch = takeBatch(settlements);
    const changed = [...changes.values()].sort((a, b) => a.hookId - b.hookId);
    changes.clear();
    const rests = [...parts.chooseRests(batch)].sort((a, b) => a.hookId - b.hookId);
    const unit = [
      ...settleSteps(batch, owner),
      ...steps.splice(0),
      ...endpointSteps(changed),
      ...restSteps(rests),
      ...hookResultSteps(takeResults(isLast)),
    ];
    if (unit.length > 0) await storeSurely(unit);
    parts.onStored(batch, rests);
  };

  const storeSurely = async (unit: readonly Step[]): Promise<void> => {
    for (let waitMs = RETRY_MS; !isAbandoned; waitMs = Math.min(waitMs * 2, MAX_RETRY_MS)) {
      try {
        await store.writeAll(unit);
        return;
      } catch (error) {
        log.warn({ reason: describeError(error) }, 'Results of deliveries are not stored yet');
        await world.sleep(waitMs);
      }
    }
  };

  const waitForMore = async (): Promise<void> => {
    const waitMs = lastBatchMs + BATCH_EVERY_MS - world.monotonicMs();
    if (waitMs > 0 && settlements.length < FULL_BATCH) await world.sleep(waitMs);
    lastBatchMs = world.monotonicMs();
  };

  const run = async (isLast: boolean): Promise<void> => {
    do {
      if (!isLast) await waitForMore();
      isNudged = false;
      await storeBatch(isLast);
    } while (settlements.length > 0 || changes.size > 0 || steps.length > 0 || isNudged);
  };
  const start = (isLast = false): Promise<void> => {
    running ??= Promise.resolve()
      .then(() => run(isLast))
      .catch((error: unknown) => log.error({ err: error }, 'A batch of results was lost'))
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  const nudge = (): void => {
    isNudged = true;
    void start();
  };

  return {
    settle: (settlement, report) => {
      settlements.push(settlement);
      reports.set(settlement.hookId, report);
      void start();
    },
    change: (change) => {
      changes.set(change.hookId, change);
      void start();
    },
    disable: ({ hookId, reason }) => {
      steps.push(disableHookStep(hookId, reason, world.nowMs()));
      void start();
    },
    also: (...more) => {
      steps.push(...more);
      void start();
    },
    nudge,
    flush: async () => {
      do {
        await running;
        clearTimeout(resultTimer);
        resultTimer = undefined;
        await start(true);
      } while (reports.size > 0 && !isAbandoned);
    },
    abandon: () => {
      isAbandoned = true;
    },
  };
}
