/**
 * Remembers requests under way: their forecasts, and the events that move the histories of servers. A late report enters a
 * history with the time at which it happened, and an event that is dated ahead by a wrong clock with the time at which it was
 * reported. A first token that is reported before its dispatch enters the history together with the dispatch.
 */
import { HISTORY_SIZE } from '../history/server-history.ts';
import type { Forecast } from '../online/forecasts.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { HISTORY_COLUMNS } from '../schema/columns.ts';
import type {
  DispatchedEvent,
  ObservationEvent,
  ObservedInput,
  WholeObservation,
} from '../schema/observation-event.ts';

/** The input of a request. */
export type DispatchedInput = Pick<DispatchedEvent, 'targetModel' | 'input' | 'history'>;

interface RememberedRequest {
  readonly forecast: Forecast;
  readonly targetModel: string;
  readonly atMs: number;
}

export interface RememberedRequests {
  find(requestId: string): RememberedRequest | undefined;
  add(event: DispatchedEvent, forecast: Forecast): void;
  /** Adds the event to the history of its server. */
  moveHistory(event: ObservationEvent, report: EventReport): void;
}

export interface EventReport {
  /** When the event was reported. */
  readonly knownMs: number;
  /** The first token of its request, if that was reported by then. */
  readonly ttftMs?: number | undefined;
  /** The end of its request was reported before its dispatch. */
  readonly hasEnded: boolean;
}

/** Older requests are forgotten: when their time is reported, they are forecast again as of their dispatch. */
const MAX_REMEMBERED = 50_000;

export function createRememberedRequests(predictor: SwappablePredictor): RememberedRequests {
  const remembered = new Map<string, RememberedRequest>();

  /** Opens the history of the server that a remembered request was sent to. */
  function openHistory({ targetModel, forecast }: RememberedRequest, knownMs: number) {
    const live = predictor.live(targetModel);
    const history = live.histories.ensure(live.adopt(forecast).key.server);
    history.begin(knownMs);
    return history;
  }

  function forget(requestId: string, knownMs: number): void {
    const request = remembered.get(requestId);
    if (request === undefined) return;
    openHistory(request, knownMs).end(requestId);
    remembered.delete(requestId);
  }

  return {
    find: (requestId) => remembered.get(requestId),
    add({ requestId, targetModel, atMs }, forecast) {
      remembered.set(requestId, { forecast, targetModel, atMs });
    },
    moveHistory(event, { knownMs, ttftMs, hasEnded }) {
      const { kind, requestId } = event;
      if (kind === 'observation') return moveByObservation(predictor, event, knownMs);
      const request = remembered.get(requestId);
      if (request === undefined) return;
      if (kind === 'finished') return forget(requestId, knownMs);
      const history = openHistory(request, knownMs);
      const endWait = (afterMs: number) => history.firstToken(requestId, Math.min(knownMs, request.atMs + afterMs));
      if (kind === 'first_token') return endWait(event.ttftMs);
      const atMs = Math.min(knownMs, event.atMs);
      history.dispatch(requestId, { atMs, tokens: countComputedTokens(event.input) });
      if (ttftMs !== undefined) endWait(ttftMs);
      if (hasEnded) forget(requestId, knownMs);
      if (remembered.size > MAX_REMEMBERED) forget(remembered.keys().next().value!, knownMs);
    },
  };
}

/** Overwritten for each event. */
const asOf = new Float64Array(HISTORY_SIZE);

/** Returns an event that has an input with the history of its server when the request was sent; other events are returned as they are. */
export function readHistoryAsOf(
  predictor: SwappablePredictor,
  event: ObservationEvent,
  nowMs: number,
): ObservationEvent {
  if (!('input' in event) || event.history !== undefined) return event;
  const { servers, histories } = predictor.live(event.targetModel);
  const address = Buffer.from(event.input.serverIp);
  const known = histories.find(servers.find(address, 0, address.length));
  if (known === undefined) return event;
  known.readAsOf(Math.min(nowMs, event.atMs), asOf);
  // A plain array: a typed array that is sent to another thread has memory outside the heap in both threads, which each garbage
  // collection has to sweep.
  return { ...event, history: HISTORY_COLUMNS.map((_, h) => asOf[h]!) };
}

function moveByObservation(predictor: SwappablePredictor, event: WholeObservation, knownMs: number): void {
  const { requestId, targetModel, input, ttftMs } = event;
  const { servers, histories } = predictor.live(targetModel);
  const history = histories.ensure(servers.ensure(Buffer.from(input.serverIp)));
  history.begin(knownMs);
  history.dispatch(requestId, { atMs: Math.min(knownMs, event.atMs), tokens: 0 });
  if (ttftMs === undefined) history.end(requestId);
  else history.firstToken(requestId, Math.min(knownMs, event.atMs + ttftMs));
}

/** Prompt tokens that are not in the prefix cache. */
function countComputedTokens({ inputTokenLength, prefixCacheScore }: ObservedInput): number {
  return inputTokenLength * Math.max(0, 1 - prefixCacheScore);
}
