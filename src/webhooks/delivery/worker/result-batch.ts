/** Results that wait to be stored, and the unit of steps that stores a batch of them. */
import type { Step } from '../../../database/store.ts';
import { describeResult } from '../queue/attempt-record.ts';
import { type EndpointChange, endpointSteps, hookSteps, type Rest } from '../queue/endpoint-change-store.ts';
import { type Settlement, settleSteps } from '../queue/settlement-store.ts';
import type { SendReport } from '../send/send-report.ts';

const MAX_BATCH = 256;

/** What a stage of the worker returns, to be stored. */
export interface Results {
  /** An attempt that ended. */
  readonly attempt?: { readonly settlement: Settlement; readonly report: SendReport };
  readonly changes: readonly EndpointChange[];
}

export interface ResultQueue {
  readonly settlements: Settlement[];
  readonly changes: EndpointChange[];
  /** The last report of each hook, by its id. */
  readonly reports: Map<number, SendReport>;
}

export interface Batch {
  readonly settlements: readonly Settlement[];
  readonly changes: readonly EndpointChange[];
  readonly reports: ReadonlyMap<number, SendReport>;
}

export function createResultQueue(): ResultQueue {
  return { settlements: [], changes: [], reports: new Map() };
}

export function addResults(queue: ResultQueue, { attempt, changes }: Results): void {
  queue.changes.push(...changes);
  if (attempt === undefined) return;
  queue.settlements.push(attempt.settlement);
  queue.reports.set(attempt.settlement.hookId, attempt.report);
}

/** Reports alone do not ask for a batch. */
export function hasResults({ settlements, changes }: ResultQueue): boolean {
  return settlements.length > 0 || changes.length > 0;
}

export function takeBatch(queue: ResultQueue, { withReports }: { readonly withReports: boolean }): Batch {
  const reports = withReports ? new Map(queue.reports) : new Map<number, SendReport>();
  if (withReports) queue.reports.clear();
  return { settlements: takeSettlements(queue.settlements), changes: queue.changes.splice(0), reports };
}

/** From the front, no two of one delivery: those have to be stored one after the other. */
function takeSettlements(waiting: Settlement[]): Settlement[] {
  const ids = new Set<number>();
  for (const { deliveryId } of waiting.slice(0, MAX_BATCH)) {
    if (ids.has(deliveryId)) break;
    ids.add(deliveryId);
  }
  return waiting.splice(0, ids.size);
}

export interface BatchContext {
  /** Of the shards. */
  readonly owner: string;
  readonly nowMs: number;
  readonly rests: readonly Rest[];
}

/** Deliveries, then rows of `endpoint_queue`, then rows of `hooks`: the order in which every unit locks them. */
export function batchSteps({ settlements, changes, reports }: Batch, { owner, nowMs, rests }: BatchContext): Step[] {
  const results = [...reports].map(([hookId, report]) => ({
    hookId,
    result: describeResult(report),
    status: report.status,
  }));
  return [
    ...settleSteps(settlements, owner),
    ...endpointSteps(changes, rests, nowMs),
    ...hookSteps(changes, results, nowMs),
  ];
}
