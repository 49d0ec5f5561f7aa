/**
 * Turns requests of traces into observations once the requests that overlap them have ended. A span is exported when its request
 * has ended, and the load at its start is made by requests that may end much later. So spans are durable at once and wait: a
 * request is learned when the requests under way at its start have had time to end.
 */
import { Counter, Gauge } from 'prom-client';
import type { Store } from '../../database/store.ts';
import { createSweepPace } from '../../database/sweep.ts';
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import { reconstructLoads } from '../formats/request-load.ts';
import { toObservation } from '../formats/requests.ts';
import { findMistake } from '../schema/observation.ts';
import type { ObservationSink, WholeObservation } from '../schema/observation-event.ts';
import { createArrivals } from './arrivals.ts';
import { createEndedSpans, KEPT_AFTER_END_MS } from './ended-spans.ts';
import type { ArrivalRules } from './learnable-spans.ts';
import {
  countWaitingSpans,
  deleteSpansOver,
  listDueSpans,
  listSpansUnderWay,
  markSpansLearned,
  storeSpans,
  type WaitingSpan,
} from './span-store.ts';

export interface SpanQueue extends Worker {
  /** Returns the rules for spans that arrive now. */
  rules(): ArrivalRules;
  /** Resolves when all spans are durable. Throws `unavailable` when too many wait. */
  add(spans: readonly WaitingSpan[]): Promise<void>;
  /** Learns from the spans that are due now. */
  learnDue(signal: AbortSignal): Promise<void>;
}

export interface SpanQueueDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly sink: ObservationSink;
  /** Tokens that the KV cache of one server holds. */
  readonly kvCapacityTokens: number;
  /** A request is learned this long after its start: longer than nearly all requests take. */
  readonly holdMs: number;
  /** At most this many requests under way are read for the requests that are due together. */
  readonly maxUnderWay?: number;
  readonly maxWaiting?: number;
}

const REST_MS = 5000;
const MAX_WAITING = 200_000;
const MAX_DUE = 500;
/** At most this many requests under way are read for `MAX_DUE` requests. */
const MAX_UNDER_WAY = 50_000;

export function createSpanQueue(dependencies: SpanQueueDependencies): SpanQueue {
  const { store, world, log, sink, holdMs, maxUnderWay = MAX_UNDER_WAY, maxWaiting = MAX_WAITING } = dependencies;
  const { learned, waiting } = createSpanMetrics(dependencies.metrics);
  const ended = createEndedSpans(store);
  const cutOff = createCutOffLog(log, maxUnderWay);
  const arrivals = createArrivals(world, { holdMs, maxWaiting });
  let waitingCount = 0;
  /** Spans added since the process started. */
  let addedCount = 0;

  async function learn(due: readonly WaitingSpan[]): Promise<void> {
    const underWay = await listUnderWay(store, due, maxUnderWay + 1);
    cutOff.note(underWay.length > maxUnderWay);
    const context = [...(await ended.listBefore(due[0]!.startMs)), ...underWay, ...due];
    // A due request can be among those under way too, if another process has learned it meanwhile.
    const distinct = new Map(context.map((span) => [span.requestId, span]));
    const events = toEvents(due, [...distinct.values()], dependencies.kvCapacityTokens);
    // The sink refuses a request that was learned before a crash by its id, until the id is deleted (`observations/request-sweeper.ts`).
    const { accepted } = await sink.report(events);
    await markSpansLearned(
      store,
      due.map((span) => span.requestId),
    );
    ended.addLearned(due);
    learned.inc(accepted);
  }

  async function learnDue(signal: AbortSignal): Promise<void> {
    const startedByMs = world.nowMs() - holdMs;
    for (;;) {
      const due = await listDueSpans(store, startedByMs, MAX_DUE);
      if (due.length > 0) await learn(due);
      if (due.length < MAX_DUE || signal.aborted) break;
    }
    cutOff.endRound();
    arrivals.forgetOld();
    await deleteSpansOver(store, startedByMs - KEPT_AFTER_END_MS, createSweepPace(world, signal));
    const addedBefore = addedCount;
    const counted = await countWaitingSpans(store);
    // The count may lack spans added during the query. If it has them, they count twice until the next round.
    waitingCount = counted + addedCount - addedBefore;
    waiting.set(waitingCount);
  }

  return {
    ...createRoundWorker({ name: 'traces', restMs: REST_MS, world, log, round: learnDue }),
    learnDue,
    rules: arrivals.readRules,
    async add(spans) {
      if (waitingCount + spans.length > maxWaiting)
        throw new Failure('unavailable', `Cannot take traces: ${maxWaiting} requests wait already`, {
          retryAfterSeconds: 30,
        });
      if (spans.length === 0) return;
      arrivals.add(spans);
      await storeSpans(store, spans);
      addedCount += spans.length;
      waitingCount += spans.length;
      waiting.set(waitingCount);
    },
  };
}

/** Returns the learned requests that were under way when one of the due requests started. */
async function listUnderWay(store: Store, due: readonly WaitingSpan[], limit: number): Promise<WaitingSpan[]> {
  return await listSpansUnderWay(store, { fromMs: due[0]!.startMs, toMs: due.at(-1)!.startMs, limit });
}

/** Logs when loads begin to be too low and when they are right again, not at each of the many batches of a busy minute. */
function createCutOffLog(log: Log, limit: number) {
  let wasCutOff = false;
  let isCutOff: boolean | undefined;
  return {
    note(isBatchCutOff: boolean): void {
      if (isBatchCutOff && !wasCutOff)
        log.warn({ limit }, 'Cannot count all requests of traces that were under way; loads are learned too low');
      wasCutOff ||= isBatchCutOff;
      isCutOff = isCutOff || isBatchCutOff;
    },
    endRound(): void {
      if (wasCutOff && isCutOff === false)
        log.info({ limit }, 'All requests of traces that were under way are counted again');
      wasCutOff = isCutOff ?? wasCutOff;
      isCutOff = undefined;
    },
  };
}

function toEvents(
  due: readonly WaitingSpan[],
  context: readonly WaitingSpan[],
  kvCapacityTokens: number,
): WholeObservation[] {
  const loads = reconstructLoads(context, kvCapacityTokens);
  const dueIds = new Set(due.map((span) => span.requestId));
  return [...context.entries()].flatMap(([i, span]) => {
    if (!dueIds.has(span.requestId)) return [];
    const { targetModel, requestId, outputTokens } = span;
    const observation = toObservation(span, loads[i]!, targetModel);
    // The tokens of many long requests can add up to more than an input may have.
    if (findMistake(observation) !== undefined) return [];
    const { input, ttftMs, tpotMs } = observation;
    return [{ kind: 'observation', requestId, targetModel, input, atMs: span.startMs, ttftMs, tpotMs, outputTokens }];
  });
}

function createSpanMetrics(metrics: Metrics) {
  return {
    learned: new Counter({
      name: 'trivet_prediction_trace_requests_total',
      help: 'Requests of traces that were made observations.',
      registers: [metrics],
    }),
    waiting: new Gauge({
      name: 'trivet_prediction_trace_requests_waiting',
      help: 'Requests of traces that are kept because others may still have been under way at their start.',
      registers: [metrics],
    }),
  };
}
