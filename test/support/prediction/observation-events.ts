/** One report of every kind of event, as it is sent and as a sink gets it. */
import { fillMetrics } from '../../../src/prediction/schema/input-fields.ts';
import type { ObservationEvent } from '../../../src/prediction/schema/observation-event.ts';
import { messageType } from '../grpc/proto-messages.ts';

export const EventMessage = messageType('observation.v1.Event');

/** The reader's clock: the time of an event without a time of its own. */
export const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

export const input = {
  podType: 'decode',
  ...fillMetrics(() => 0),
  inputTokenLength: 1000,
  prefixCacheScore: 0.5,
  numRequestWaiting: 1,
  numRequestRunning: 2,
  kvCacheUsage: 0.25,
  inflightTokens: 3000,
  hbmUtilization: 0.7,
  aiCoreUtilization: 0.6,
  bandwidthUtilization: 0.4,
  serverIp: '10.0.0.1',
};
const at = { seconds: 1_700_000_000, nanos: 250_000_000 };
const atMs = 1_700_000_000_250;

export const EVENTS = [
  { dispatched: { requestId: 'r1', targetModel: 'm', input: { inputId: 3, ...input }, at } },
  { firstToken: { requestId: 'r1', ttftMillis: 120.5, at } },
  { finished: { requestId: 'r1', tpotMillis: 9.5, outputTokens: 40, at } },
  { finished: { requestId: 'r2', outputTokens: 1 } },
  { observation: { targetModel: 'm', input, at, ttftMillis: 88 } },
  { observation: { requestId: 'r3', targetModel: 'm', input, tpotMillis: 7, outputTokens: 5 } },
];
export const EXPECTED: ObservationEvent[] = [
  { kind: 'dispatched', requestId: 'r1', targetModel: 'm', input, atMs },
  { kind: 'first_token', requestId: 'r1', ttftMs: 120.5, atMs },
  { kind: 'finished', requestId: 'r1', tpotMs: 9.5, outputTokens: 40, atMs },
  { kind: 'finished', requestId: 'r2', tpotMs: undefined, outputTokens: 1, atMs: NOW_MS },
  {
    kind: 'observation',
    requestId: '',
    targetModel: 'm',
    input,
    atMs,
    ttftMs: 88,
    tpotMs: undefined,
    outputTokens: 0,
  },
  {
    kind: 'observation',
    requestId: 'r3',
    targetModel: 'm',
    input,
    atMs: NOW_MS,
    ttftMs: undefined,
    tpotMs: 7,
    outputTokens: 5,
  },
];

/** The JSON mapping writes a time as text. */
export function toJson(event: object): object {
  return JSON.parse(JSON.stringify(event).replaceAll(JSON.stringify(at), '"2023-11-14T22:13:20.250Z"'));
}
