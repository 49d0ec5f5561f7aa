/**
 * Keeps the circuit breakers of the origins that a worker sends to, in memory. A new process begins with all of them closed.
 */
import {
  advanceBreaker,
  allowedAttempts,
  type Breaker,
  type BreakerEvent,
  type BreakerMoment,
  CLOSED_BREAKER,
  ORIGIN_RULES,
} from './breaker.ts';

/**
 * At most this many breakers are kept, the newest, since a tenant can use any number of origins. Closed breakers with failures in their
 * window are counted separately, so that many origins with a few failures do not evict a pause.
 */
const MAX_BREAKERS = 10_000;
/** So long after its pause, an open breaker is not listed: nothing is sent to its origin any more, as after the webhook was deleted. */
const LISTED_MS = 3_600_000;

export interface OriginLimits {
  /** All owners together may have this many attempts under way at once. */
  readonly total: number;
  /** One owner may have this many, so that one owner's slow path cannot block the ramp of an origin. */
  readonly ofOneOwner: number;
}

const NO_LIMITS: OriginLimits = { total: Number.POSITIVE_INFINITY, ofOneOwner: Number.POSITIVE_INFINITY };

export interface OriginChange {
  readonly hasOriginOpened: boolean;
  readonly hasOriginRecovered: boolean;
}

export interface OriginBreakers {
  limits(origin: string, nowMs: number): OriginLimits;
  find(origin: string): Breaker;
  record(origin: string, event: BreakerEvent, moment: BreakerMoment): OriginChange;
  /** All that are kept, except those that had no probe for an hour after their pause. */
  list(nowMs: number): Iterable<Breaker>;
}

export function createOriginBreakers(): OriginBreakers {
  const closed = new Map<string, Breaker>();
  const others = new Map<string, Breaker>();
  const find = (origin: string) => others.get(origin) ?? closed.get(origin) ?? CLOSED_BREAKER;
  const keep = (origin: string, breaker: Breaker): void => {
    const [into, from] = breaker.state === 'closed' ? [closed, others] : [others, closed];
    from.delete(origin);
    if (breaker === CLOSED_BREAKER) into.delete(origin);
    else into.set(origin, breaker);
    if (into.size > MAX_BREAKERS) deleteOldest(into);
  };
  return {
    find,
    limits: (origin, nowMs) => {
      const breaker = others.get(origin);
      if (breaker === undefined) return NO_LIMITS;
      const allowed = allowedAttempts(breaker, nowMs);
      if (breaker.state === 'ramping') return { ...NO_LIMITS, ofOneOwner: allowed };
      return { ...NO_LIMITS, total: allowed };
    },
    record: (origin, event, moment) => {
      const before = find(origin);
      const after = advanceBreaker(before, event, { ...moment, rules: ORIGIN_RULES });
      if (after !== before) keep(origin, after);
      return {
        hasOriginOpened: before.state !== 'open' && after.state === 'open',
        hasOriginRecovered: before.state === 'probing' && after.state === 'ramping',
      };
    },
    list: (nowMs) => [...closed.values(), ...others.values()].filter((breaker) => !isAbandoned(breaker, nowMs)),
  };
}

/** No probe has ended for a long time since its pause. */
function isAbandoned({ state, untilMs }: Breaker, nowMs: number): boolean {
  return (state === 'open' || state === 'probing') && untilMs + LISTED_MS < nowMs;
}

function deleteOldest(breakers: Map<string, Breaker>): void {
  for (const origin of breakers.keys()) return void breakers.delete(origin);
}
