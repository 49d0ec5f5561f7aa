/**
 * Decides the outcome of an attempt: accepted, gone, refused, unreachable or blocked; and how the circuit breakers count it.
 *
 * A response comes from one path, so it counts for that hook alone, whatever its status: many owners may have hooks at one Jenkins
 * or one gateway, and a response to one hook must not stop another. Only failures before a request is sent (name, connection, TLS)
 * are the same for all hooks of an origin, and no path can cause them.
 */
import type { BreakerEvent } from './breaker.ts';

/** The outcome of one attempt. */
export type Outcome =
  | { readonly kind: 'accepted'; readonly status: number }
  | { readonly kind: 'gone'; readonly status: 410 }
  | { readonly kind: 'refused'; readonly status: number; readonly retryAfterMs?: number | undefined }
  /** `stage`: the attempt could not begin (`before-connect`), could not connect (`connect`), or got no usable response (`response`). */
  | { readonly kind: 'unreachable'; readonly reason: string; readonly stage: 'before-connect' | 'connect' | 'response' }
  | { readonly kind: 'blocked' };

/** The outcome of a response, by its status. Redirects are not followed, so they are refusals. */
export function toOutcome(status: number, retryAfterMs?: number): Outcome {
  if (status >= 200 && status < 300) return { kind: 'accepted', status };
  if (status === 410) return { kind: 'gone', status };
  return { kind: 'refused', status, retryAfterMs };
}

export interface BreakerEvents {
  /** Undefined if the outcome says nothing about the hook. */
  readonly ofHook: BreakerEvent | undefined;
  readonly ofOrigin: BreakerEvent | undefined;
}

const SUCCESS: BreakerEvent = { kind: 'success' };
const FAILURE: BreakerEvent = { kind: 'failure' };

type EventsOf = { readonly [K in Outcome['kind']]: (outcome: Extract<Outcome, { kind: K }>) => BreakerEvents };

const EVENTS_OF: EventsOf = {
  accepted: () => ({ ofHook: SUCCESS, ofOrigin: SUCCESS }),
  refused: (outcome) => ({ ofHook: toRefusalEvent(outcome), ofOrigin: SUCCESS }),
  gone: () => ({ ofHook: FAILURE, ofOrigin: SUCCESS }),
  unreachable: ({ stage }) => EVENTS_OF_STAGE[stage],
  // No request reached the receiver.
  blocked: () => ({ ofHook: FAILURE, ofOrigin: undefined }),
};

const EVENTS_OF_STAGE: Readonly<Record<Extract<Outcome, { kind: 'unreachable' }>['stage'], BreakerEvents>> = {
  // The fault is the sender's: no request reached the receiver.
  'before-connect': { ofHook: FAILURE, ofOrigin: undefined },
  connect: { ofHook: undefined, ofOrigin: FAILURE },
  // One path may stay silent while the others answer.
  response: { ofHook: FAILURE, ofOrigin: SUCCESS },
};

export function toBreakerEvents(outcome: Outcome): BreakerEvents {
  return (EVENTS_OF[outcome.kind] as (outcome: Outcome) => BreakerEvents)(outcome);
}

/**
 * RFC 6585 §4: a 429 is about the rate of this sender, so its `Retry-After` counts at once. With any other status it counts only if
 * this failure opens the breaker.
 */
function toRefusalEvent({ status, retryAfterMs = 0 }: Extract<Outcome, { kind: 'refused' }>): BreakerEvent {
  if (retryAfterMs === 0) return FAILURE;
  return { kind: status === 429 ? 'rate_limited' : 'failure', retryAfterMs };
}
