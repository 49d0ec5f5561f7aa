/**
 * Keeps the circuit breakers of the origins that a worker sends to, in memory. A new process learns them from its attempts.
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

/** At most this many breakers that are not closed are kept, the newest: a tenant can name as many origins as it likes. */
const MAX_BREAKERS = 10_000;

export interface OriginLimits {
  /** All owners together may have this many attempts under way at once. */
  readonly total: number;
  /** One owner may have this many: one owner's slow path cannot hold the ramp of an origin. */
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
  list(): Iterable<Breaker>;
}

export function createOriginBreakers(): OriginBreakers {
  const breakers = new Map<string, Breaker>();
  const find = (origin: string) => breakers.get(origin) ?? CLOSED_BREAKER;
  const keep = (origin: string, breaker: Breaker): void => {
    if (breaker === CLOSED_BREAKER) breakers.delete(origin);
    else breakers.set(origin, breaker);
    const oldest = breakers.size > MAX_BREAKERS ? breakers.keys().next().value : undefined;
    if (oldest !== undefined) breakers.delete(oldest);
  };
  return {
    find,
    limits: (origin, nowMs) => {
      const breaker = breakers.get(origin);
      if (breaker === undefined || breaker.state === 'closed') return NO_LIMITS;
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
    list: () => breakers.values(),
  };
}
