/** Decides which spans of an export can be learned from, and why others cannot. */
import { findTextFault } from '../../database/storable-text.ts';
import { findRequestMistake } from '../formats/request-log.ts';
import { MODEL_MISSING, parseRequestSpan, SERVER_MISSING } from '../formats/spans/request-span.ts';
import type { Span } from '../formats/spans/span.ts';
import type { WaitingSpan } from './span-store.ts';

export interface AcceptedSpans {
  readonly spans: readonly WaitingSpan[];
  /** Spans of requests that cannot be learned from. Spans of other things, and of requests that failed, are not among them. */
  readonly rejected: number;
  /** Why the first of them was rejected; empty if none was. */
  readonly reason: string;
}

/** What a span must keep when it arrives. */
export interface ArrivalRules {
  readonly nowMs: number;
  /** How long ago a request may have ended. */
  readonly maxLateMs: number;
  /** The most requests of one server that may wait. */
  readonly maxOfServer: number;
  /** Returns how many requests of a server arrived lately, and may still wait. */
  readonly countArrived: (server: string) => number;
}

export interface SpanRules extends ArrivalRules {
  /** The target model of spans that name none; such spans are rejected when it is undefined. */
  readonly model?: string | undefined;
}

export function selectLearnableSpans(spans: Iterable<Span>, rules: SpanRules): AcceptedSpans {
  const accepted: WaitingSpan[] = [];
  const reasons: string[] = [];
  let index = 0;
  for (const span of spans) {
    const result = span.isFailed ? undefined : acceptSpan(span, rules);
    if (typeof result === 'string') reasons.push(`span ${index}: ${result}`);
    else if (result !== undefined) accepted.push(result);
    index++;
  }
  return { spans: accepted, rejected: reasons.length, reason: reasons[0] ?? '' };
}

/** The most bytes of a name, because samples and the state of servers keep it. */
const MAX_NAME_BYTES = 256;
/** How far the clock of a server may be ahead: a span arrives after its request has ended. */
const MAX_AHEAD_MS = 60_000;

/** The request, why it cannot be learned from, or undefined for a span of something else. */
function acceptSpan(span: Span, { model = '', ...rules }: SpanRules): WaitingSpan | string | undefined {
  const parsed = parseRequestSpan(span);
  if (parsed === undefined) return undefined;
  if ('refusal' in parsed) return parsed.refusal;
  const { request } = parsed;
  const targetModel = request.targetModel || model;
  if (span.spanId === '') return 'spanId must be present';
  const waiting = { ...request, targetModel, requestId: `span:${span.traceId}:${span.spanId}`, run: 'traces' };
  const mistake =
    findNameMistake('spanId', waiting.requestId) ??
    (targetModel === ''
      ? `${MODEL_MISSING}; or PREDICTION_TRACES_MODEL must`
      : findNameMistake('the name of the model', targetModel)) ??
    (request.server === '' ? SERVER_MISSING : findNameMistake('the name of the server', request.server)) ??
    findRequestMistake(waiting) ??
    findArrivalMistake(waiting, rules);
  return mistake ?? waiting;
}

function findArrivalMistake({ server, endMs }: WaitingSpan, rules: ArrivalRules): string | undefined {
  const { nowMs, maxLateMs, maxOfServer } = rules;
  if (endMs > nowMs + MAX_AHEAD_MS)
    return `the request must not end more than ${MAX_AHEAD_MS / 1000} s ahead: check the clock of the server`;
  if (endMs < nowMs - maxLateMs)
    return `the request must have ended at most ${maxLateMs / 1000} s ago, as its load is not known later: check the clock of the server and how long the collector waits, or raise PREDICTION_TRACES_HOLD_SECONDS`;
  if (rules.countArrived(server) >= maxOfServer)
    return `the server must send fewer requests: ${maxOfServer} of it wait already`;
  return undefined;
}

function findNameMistake(name: string, value: string): string | undefined {
  if (value === '') return `${name} must be present`;
  if (Buffer.byteLength(value) > MAX_NAME_BYTES) return `${name} must have at most ${MAX_NAME_BYTES} bytes`;
  const fault = findTextFault(value);
  return fault === undefined ? undefined : `${name} ${fault}`;
}
