/** Decides which spans of an export can be learned from, and why others cannot. */
import { findTextFault } from '../../database/storable-text.ts';
import { findRequestMistake } from '../formats/request-log.ts';
import { MODEL_MISSING, parseRequestSpan, SERVER_MISSING } from '../formats/spans/request-span.ts';
import type { Span } from '../formats/spans/span.ts';
import type { WaitingSpan } from './span-store.ts';

export interface AcceptedSpans {
  readonly spans: readonly WaitingSpan[];
  /** How many requests cannot be learned from, without spans that are not of a request and spans of failed requests. */
  readonly rejected: number;
  /** Why the first of them was rejected; empty without rejected spans. */
  readonly reason: string;
}

/** The rules for a span at its arrival. */
export interface ArrivalRules {
  readonly nowMs: number;
  /** A request may have ended at most this long ago. */
  readonly maxLateMs: number;
  /** At most this many requests of one server may wait. */
  readonly maxOfServer: number;
  /** Returns how many requests of a server arrived recently and may still wait. */
  readonly countArrived: (server: string) => number;
}

export interface SpanRules extends ArrivalRules {
  /** The target model of spans that do not name one; such spans are rejected when it is undefined. */
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

/** The longest name in bytes, limited because samples and the state of servers keep it. */
const MAX_NAME_BYTES = 256;
/** The clock of a server may be ahead by this much: a span arrives after its request has ended. */
const MAX_AHEAD_MS = 60_000;

/** Returns the request, or why it cannot be learned from; undefined for a span that is not of a request. */
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
