/** Collects results that wait to be stored, and builds the transaction that stores a batch of them. */
import type { BoundStatement } from '../../../database/store.ts';
import { describeResponse } from '../queue/attempt-record.ts';
import { type AttemptResult, attemptResultStatements } from '../queue/attempt-result-store.ts';
import {
  type HookQueueChange,
  hookQueueStatements,
  hookStatements,
  type Sleep,
} from '../queue/hook-queue-change-store.ts';
import type { SendReport } from '../send/send-report.ts';

const MAX_BATCH = 256;

/** The results of a stage, which have to be stored. */
export interface Results {
  /** An attempt that ended. */
  readonly attempt?: { readonly result: AttemptResult; readonly report: SendReport };
  readonly changes: readonly HookQueueChange[];
}

export interface ResultQueue {
  readonly attemptResults: AttemptResult[];
  readonly changes: HookQueueChange[];
  /** The last report of each hook, by its id. */
  reports: Map<number, SendReport>;
}

export interface Batch {
  readonly attemptResults: readonly AttemptResult[];
  readonly changes: readonly HookQueueChange[];
  readonly reports: ReadonlyMap<number, SendReport>;
}

export function createResultQueue(): ResultQueue {
  return { attemptResults: [], changes: [], reports: new Map() };
}

export function addResults(queue: ResultQueue, { attempt, changes }: Results): void {
  queue.changes.push(...changes);
  if (attempt === undefined) return;
  queue.attemptResults.push(attempt.result);
  queue.reports.set(attempt.result.hookId, attempt.report);
}

/** Last responses of hooks alone (`reports`) do not start a batch. */
export function hasResults({ attemptResults, changes }: ResultQueue): boolean {
  return attemptResults.length > 0 || changes.length > 0;
}

export function takeBatch(queue: ResultQueue, { withReports }: { readonly withReports: boolean }): Batch {
  const reports = withReports ? queue.reports : new Map<number, SendReport>();
  if (withReports) queue.reports = new Map();
  return { attemptResults: takeDistinct(queue.attemptResults), changes: queue.changes.splice(0), reports };
}

/** Takes results from the front, at most one for each delivery: two of one delivery are stored in two batches. */
function takeDistinct(waiting: AttemptResult[]): AttemptResult[] {
  const ids = new Set<number>();
  for (const { deliveryId } of waiting.slice(0, MAX_BATCH)) {
    if (ids.has(deliveryId)) break;
    ids.add(deliveryId);
  }
  return waiting.splice(0, ids.size);
}

export interface BatchContext {
  /** The owner of the shards. */
  readonly workerId: string;
  readonly nowMs: number;
  readonly sleeps: readonly Sleep[];
}

/** Deliveries, then rows of `endpoint_queue`, then rows of `hooks`: the order in which every transaction locks them. */
export function batchStatements(
  { attemptResults, changes, reports }: Batch,
  { workerId, nowMs, sleeps }: BatchContext,
): BoundStatement[] {
  const responses = [...reports].map(([hookId, report]) => ({
    hookId,
    result: describeResponse(report),
    status: report.status,
  }));
  const ofHookQueues = hookQueueStatements([...listFailures(attemptResults), ...changes], sleeps, nowMs);
  return [
    ...attemptResultStatements(attemptResults, workerId, ofHookQueues),
    ...hookStatements(changes, responses, nowMs),
  ];
}

/** Failures of manual attempts. They are counted in the transaction of their attempts, so that a repetition of it does not count them again. */
function listFailures(attemptResults: readonly AttemptResult[]): HookQueueChange[] {
  const failures = attemptResults.filter(({ isManualFailure }) => isManualFailure);
  return failures.map(({ hookId, deliveryId, attempt }) => ({
    kind: 'count failure',
    hookId,
    deliveryId,
    attemptId: attempt.id,
  }));
}
