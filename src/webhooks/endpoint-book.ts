/**
 * The endpoints that a worker has in hand: what is known of each, how it fares, and which breakers keep it back. Memory
 * only; a row of `endpoint_queue` tells as much as is needed to begin again.
 */
import {
  allowedAttempts,
  type Breaker,
  beginAttempt,
  CLOSED_BREAKER,
  ENDPOINT_BREAKER,
  ORIGIN_BREAKER,
  recordFailure,
  recordSuccess,
  restoreBreaker,
} from './breaker.ts';
import { type EndpointHealth, type Outcome, updateHealth } from './delivery.ts';
import type { DueEndpoint } from './delivery-queue-store.ts';

export interface Endpoint {
  readonly hookId: number;
  readonly ownerId: string;
  readonly origin: string;
  readonly shard: number;
  /** As the row said when it was last seen. */
  version: number;
  /** The last look found all that is due. */
  isDry: boolean;
  /** Rises when something is enqueued, so that a look that was under way then does not count as the last. */
  enqueues: number;
  /** When a delivery was last found for it; monotonic. */
  lastFoundMs: number;
  /** Nothing more is loaded: it waits out a failure, is held or gone. Forgotten once nothing is under way. */
  isClosed: boolean;
  /** Ids of its deliveries that wait in memory, are sent, or whose results are not stored. */
  readonly known: Set<number>;
  health: EndpointHealth;
  breaker: Breaker;
}

interface Moment {
  readonly nowMs: number;
  readonly random: number;
}

export interface EndpointBook {
  readonly endpoints: ReadonlyMap<number, Endpoint>;
  /** Takes notice of a due row. Undefined while a former self of it has something under way. */
  note(row: DueEndpoint): Endpoint | undefined;
  /** Something was enqueued to it. False when it is not in hand. */
  refresh(hookId: number): boolean;
  forget(endpoint: Endpoint): void;
  /** Those for which it is true, `limit` at most. */
  list(test: (endpoint: Endpoint) => boolean, limit?: number): Endpoint[];
  listOfOrigin(origin: string): Endpoint[];
  allowedOfOrigin(origin: string, nowMs: number): number;
  allowedOfHook(hookId: number, nowMs: number): number;
  begin(endpoint: Endpoint, nowMs: number): void;
  record(endpoint: Endpoint, outcome: Outcome, moment: Moment): Change;
  /** The same of an attempt that was made past the breakers: for those that are open it is the probe. */
  recordProbe(place: Pick<Endpoint, 'hookId' | 'origin'>, outcome: Outcome, moment: Moment): Change;
  /** Until when its breakers keep it back; undefined when they do not. */
  pausedUntilMs(endpoint: Endpoint, nowMs: number): number | undefined;
  listOriginBreakers(): Iterable<Breaker>;
}

export interface Change {
  readonly hasHealthChanged: boolean;
  readonly hasOriginOpened: boolean;
  readonly hasOriginRecovered: boolean;
}

export function createEndpointBook(): EndpointBook {
  const endpoints = new Map<number, Endpoint>();
  const originBreakers = new Map<string, Breaker>();
  const breakerOf = (origin: string) => originBreakers.get(origin) ?? CLOSED_BREAKER;
  const setBreaker = (origin: string, breaker: Breaker) => {
    if (breaker === CLOSED_BREAKER) originBreakers.delete(origin);
    else originBreakers.set(origin, breaker);
  };
  const list = (test: (endpoint: Endpoint) => boolean, limit = Number.POSITIVE_INFINITY): Endpoint[] => {
    const found: Endpoint[] = [];
    for (const endpoint of endpoints.values()) {
      if (found.length >= limit) break;
      if (test(endpoint)) found.push(endpoint);
    }
    return found;
  };
  const learnOrigin = (name: string, before: Breaker, outcome: Outcome, moment: Moment): Change => {
    const after = recordForOrigin(before, outcome, moment);
    setBreaker(name, after);
    return {
      hasHealthChanged: false,
      hasOriginOpened: before.state !== 'open' && after.state === 'open',
      hasOriginRecovered: before.state === 'probing' && after.state === 'closed',
    };
  };
  const learnEndpoint = (endpoint: Endpoint, before: Breaker, outcome: Outcome, moment: Moment): boolean => {
    const { fails } = endpoint.health;
    endpoint.health = updateHealth(endpoint.health, outcome, moment.nowMs);
    endpoint.breaker =
      outcome.kind === 'accepted' ? recordSuccess(before) : recordFailure(before, ENDPOINT_BREAKER, moment);
    return endpoint.health.fails !== fails;
  };

  return {
    endpoints,
    list,
    listOfOrigin: (origin) => list((endpoint) => endpoint.origin === origin),
    note: (row) => {
      const found = endpoints.get(row.hook_id);
      if (found === undefined || (found.isClosed && found.known.size === 0)) {
        const endpoint = createEndpoint(row);
        endpoints.set(row.hook_id, endpoint);
        return endpoint;
      }
      if (found.isClosed || found.origin !== row.origin) return undefined;
      if (found.version !== row.version) {
        found.version = row.version;
        found.isDry = false;
      }
      return found;
    },
    refresh: (hookId) => {
      const found = endpoints.get(hookId);
      if (found === undefined) return false;
      found.enqueues += 1;
      found.isDry = false;
      return true;
    },
    forget: (endpoint) => {
      if (endpoints.get(endpoint.hookId) === endpoint) endpoints.delete(endpoint.hookId);
    },
    allowedOfOrigin: (origin, nowMs) => allowedAttempts(breakerOf(origin), nowMs),
    allowedOfHook: (hookId, nowMs) => allowedAttempts(endpoints.get(hookId)?.breaker ?? CLOSED_BREAKER, nowMs),
    begin: (endpoint, nowMs) => {
      endpoint.breaker = beginAttempt(endpoint.breaker, nowMs);
      setBreaker(endpoint.origin, beginAttempt(breakerOf(endpoint.origin), nowMs));
    },
    record: (endpoint, outcome, moment) => ({
      ...learnOrigin(endpoint.origin, breakerOf(endpoint.origin), outcome, moment),
      hasHealthChanged: learnEndpoint(endpoint, endpoint.breaker, outcome, moment),
    }),
    recordProbe: ({ hookId, origin }, outcome, moment) => {
      const endpoint = endpoints.get(hookId);
      if (endpoint !== undefined) learnEndpoint(endpoint, asProbed(endpoint.breaker), outcome, moment);
      return learnOrigin(origin, asProbed(breakerOf(origin)), outcome, moment);
    },
    pausedUntilMs: (endpoint, nowMs) => {
      const breakers = [breakerOf(endpoint.origin), endpoint.breaker].filter(({ state }) => state === 'open');
      const untilMs = Math.max(0, ...breakers.map((breaker) => breaker.untilMs));
      return untilMs > nowMs ? untilMs : undefined;
    },
    listOriginBreakers: () => originBreakers.values(),
  };
}

function createEndpoint(row: DueEndpoint): Endpoint {
  return {
    hookId: row.hook_id,
    ownerId: row.owner_id,
    origin: row.origin,
    shard: row.shard,
    version: row.version,
    isDry: false,
    enqueues: 0,
    lastFoundMs: Number.NEGATIVE_INFINITY,
    isClosed: false,
    known: new Set(),
    health: { fails: row.fails, failingSinceMs: row.failing_since_ms },
    breaker: restoreBreaker(row.fails, row.next_at_ms, ENDPOINT_BREAKER),
  };
}

/** What it would be had its pause just ended and an attempt begun. */
function asProbed(breaker: Breaker): Breaker {
  return beginAttempt(breaker, Number.POSITIVE_INFINITY);
}

function recordForOrigin(breaker: Breaker, outcome: Outcome, moment: Moment): Breaker {
  // Nothing was asked, so nothing was learned; but a probe must come to an end.
  if (outcome.kind === 'blocked' && breaker.state !== 'probing') return breaker;
  return isOriginDown(outcome) ? recordFailure(breaker, ORIGIN_BREAKER, moment) : recordSuccess(breaker);
}

/** Whether the whole destination seems to be down. A refusal of one path says nothing about the others. */
function isOriginDown(outcome: Outcome): boolean {
  if (outcome.kind === 'refused') return outcome.status >= 500 || outcome.status === 429;
  return outcome.kind === 'unreachable' || outcome.kind === 'blocked';
}
