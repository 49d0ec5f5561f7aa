/** Collects results that wait to be stored, and builds the transaction that stores a batch of them. */
import type { BoundStatement } from '../../../database/store.ts';
import { describeResponse } from '../queue/attempt-record.ts';
import { type AttemptResult, attemptResultStatements, OUTSIDE_SHARDS } from '../queue/attempt-result-store.ts';
import {
  type ChangeContext,
  type HookQueueChange,
  hookQueueStatements,
  type Sleep,
} from '../queue/hook-queue-change-store.ts';
import { hookStatements } from '../queue/hook-result-store.ts';
import { GONE } from '../schedule/disable-failing-hook.ts';
import type { SendReport } from '../send/send-report.ts';

const MAX_BATCH = 256;
/** Limit of other changes of hook queues in a batch: a failing origin may change all its hook queues. */
const MAX_CHANGES = 256;

/** Results of a stage that have to be stored. */
export interface Results {
  /** An attempt that ended. */
  readonly attempt?: EndedAttempt;
  readonly changes: readonly HookQueueChange[];
}

interface EndedAttempt {
  readonly result: AttemptResult;
  readonly report: SendReport;
  /** The URL of the attempt. */
  readonly url: string | null;
}

export interface ResultQueue {
  readonly attemptResults: AttemptResult[];
  /** In ascending order. */
  readonly changes: QueuedChange[];
  /** The total number of changes that were ever added. */
  addedChanges: number;
  /** The last attempt of each hook at each of its URLs, by `keyOfReport`. The hook shows the response of its present URL. */
  readonly reports: Map<string, EndedAttempt>;
}

interface QueuedChange {
  /** The number of changes that were added before this one. */
  readonly order: number;
  readonly change: HookQueueChange;
}

export interface Batch {
  readonly attemptResults: readonly AttemptResult[];
  readonly changes: readonly HookQueueChange[];
  readonly reports: readonly EndedAttempt[];
}

export function createResultQueue(): ResultQueue {
  return { attemptResults: [], changes: [], addedChanges: 0, reports: new Map() };
}

export function addResults(queue: ResultQueue, { attempt, changes }: Results): void {
  for (const change of changes) {
    queue.changes.push({ order: queue.addedChanges, change });
    queue.addedChanges += 1;
  }
  if (attempt === undefined) return;
  queue.attemptResults.push(attempt.result);
  queue.reports.set(keyOfReport(attempt), attempt);
}

/** The key includes the URL: a late response of a former URL must not replace that of the present URL, which alone is stored. */
function keyOfReport({ result, url }: EndedAttempt): string {
  return `${result.hookId} ${url}`;
}

/** All of the first this many changes have been taken. */
export function countTakenChanges({ changes, addedChanges }: ResultQueue): number {
  return changes[0]?.order ?? addedChanges;
}

/** Whether a batch is needed; last responses of hooks (`reports`) alone do not need one. */
export function hasResults({ attemptResults, changes }: ResultQueue): boolean {
  return attemptResults.length > 0 || changes.length > 0;
}

export function takeBatch(queue: ResultQueue, { withReports }: { readonly withReports: boolean }): Batch {
  const attemptResults = takeDistinct(queue.attemptResults);
  const changes = takeChanges(queue, attemptResults);
  return { attemptResults, changes, reports: withReports ? takeReports(queue) : [] };
}

/**
 * Takes changes from the front, and with them all others of the same hooks and of the hooks whose results are taken: a hook queue may
 * sleep after its results, and none of its changes may be left then.
 */
function takeChanges(queue: ResultQueue, attemptResults: readonly AttemptResult[]): HookQueueChange[] {
  const hookIds = new Set(attemptResults.map(({ hookId }) => hookId));
  const taken: HookQueueChange[] = [];
  const left: QueuedChange[] = [];
  for (const queued of queue.changes.splice(0)) {
    const { change } = queued;
    const hookId = change.kind === 'wake origin' ? undefined : change.hookId;
    const isTaken = taken.length < MAX_CHANGES || (hookId !== undefined && hookIds.has(hookId));
    if (isTaken) taken.push(change);
    else left.push(queued);
    if (isTaken && hookId !== undefined) hookIds.add(hookId);
  }
  for (const queued of left) queue.changes.push(queued);
  return taken;
}

/** Takes responses whose results are in this batch or stored already, since a response counts only if its result does. */
function takeReports({ reports, attemptResults }: ResultQueue): EndedAttempt[] {
  const waiting = new Set(attemptResults);
  const taken = [...reports.values()].filter(({ result }) => !waiting.has(result));
  for (const report of taken) reports.delete(keyOfReport(report));
  return taken;
}

/** Takes results from the front, at most one for each delivery; a second one goes into the next batch. */
function takeDistinct(waiting: AttemptResult[]): AttemptResult[] {
  const ids = new Set<number>();
  for (const { deliveryId } of waiting.slice(0, MAX_BATCH)) {
    if (ids.has(deliveryId)) break;
    ids.add(deliveryId);
  }
  return waiting.splice(0, ids.size);
}

export interface BatchContext extends ChangeContext {
  readonly sleeps: readonly Sleep[];
}

/** The statements in the order in which every transaction locks rows: of `deliveries`, of `endpoint_queue`, of `hooks`. */
export function batchStatements(
  { attemptResults, changes, reports }: Batch,
  { workerId, nowMs, sleeps }: BatchContext,
): BoundStatement[] {
  const responses = reports.map(({ result: { hookId, deliveryId, attempt }, report, url }) => ({
    hookId,
    deliveryId,
    startedAtMs: attempt.startedAtMs,
    result: describeResponse(report),
    status: report.status,
    url,
  }));
  const all = [...attemptResults.flatMap(listManualChanges), ...changes];
  return [
    ...attemptResultStatements(attemptResults, workerId, hookQueueStatements(all, sleeps, { workerId, nowMs })),
    ...hookStatements(all, responses, nowMs),
  ];
}

/**
 * The changes of a hook after a manual attempt. They are in the transaction of its result, so that they count only if the result does,
 * and a repetition of the transaction does not count a failure again.
 */
function listManualChanges({ hookId, deliveryId, epoch, generation, attempt }: AttemptResult): HookQueueChange[] {
  if (epoch !== OUTSIDE_SHARDS.epoch) return [];
  const key = { hookId, deliveryId, startedAtMs: attempt.startedAtMs, generation };
  if (attempt.outcome === 'accepted') return [{ kind: 'recover', ...key }];
  const failure: HookQueueChange = { kind: 'count failure', ...key, attemptId: attempt.id };
  return attempt.outcome === 'gone' ? [failure, { kind: 'disable', hookId, reason: GONE, under: key }] : [failure];
}
