/**
 * The endpoints that a worker has in hand: what is known of each, how it fares, and which breakers keep it back. Memory
 * only; a row of `endpoint_queue` has as much as is needed to begin again.
 */

import type { DueEndpoint } from '../queue/delivery-queue-store.ts';
import {
  advanceBreaker,
  allowedAttempts,
  type Breaker,
  type BreakerEvent,
  type BreakerMoment,
  CLOSED_BREAKER,
  HOOK_RULES,
  restoreBreaker,
} from '../schedule/breaker.ts';
import { type EndpointHealth, type Outcome, updateHealth } from '../schedule/delivery.ts';
import { evidenceOf } from '../schedule/evidence.ts';
import { createOriginBreakers, type OriginChange, type OriginLimits } from '../schedule/origin-breakers.ts';
import type { Pause } from '../schedule/pause.ts';

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
  limitsOfOrigin(origin: string, nowMs: number): OriginLimits;
  allowedOfHook(hookId: number, nowMs: number): number;
  begin(endpoint: Endpoint, moment: BreakerMoment): void;
  /** The attempt that probes an origin has a connection: its answer may take long, and the others need not wait for it. */
  recordConnection(origin: string, moment: BreakerMoment): OriginChange;
  /** Another process got an answer from the origin: as if the pause had ended and its probe were answered. */
  recordAnswerElsewhere(origin: string, moment: BreakerMoment): OriginChange;
  record(endpoint: Endpoint, outcome: Outcome, moment: BreakerMoment): Change;
  /**
   * The same of an attempt that was made past the breakers. A success ends their pauses. A failure counts as a probe only
   * when one was due: else whoever asks again and again would lengthen the pause for everybody.
   */
  recordProbe(place: Pick<Endpoint, 'hookId' | 'origin'>, outcome: Outcome, moment: BreakerMoment): Change;
  /** What keeps it back; undefined when nothing does. */
  findPause(endpoint: Endpoint, nowMs: number): Pause | undefined;
  listOriginBreakers(): Iterable<Breaker>;
}

export interface Change extends OriginChange {
  readonly hasHealthChanged: boolean;
}

const NO_CHANGE: OriginChange = { hasOriginOpened: false, hasOriginRecovered: false };
const BEGIN: BreakerEvent = { kind: 'begin' };
const SUCCESS: BreakerEvent = { kind: 'success' };

export function createEndpointBook(): EndpointBook {
  const endpoints = new Map<number, Endpoint>();
  const origins = createOriginBreakers();
  const list = (test: (endpoint: Endpoint) => boolean, limit = Number.POSITIVE_INFINITY): Endpoint[] => {
    const found: Endpoint[] = [];
    for (const endpoint of endpoints.values()) {
      if (found.length >= limit) break;
      if (test(endpoint)) found.push(endpoint);
    }
    return found;
  };
  const probeOrigin = (origin: string, event: BreakerEvent, moment: BreakerMoment): OriginChange => {
    origins.record(origin, BEGIN, beginProbe(event, moment));
    return origins.record(origin, event, moment);
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
    limitsOfOrigin: (origin, nowMs) => origins.limits(origin, nowMs),
    allowedOfHook: (hookId, nowMs) => allowedAttempts(endpoints.get(hookId)?.breaker ?? CLOSED_BREAKER, nowMs),
    begin: (endpoint, moment) => {
      advanceHook(endpoint, BEGIN, moment);
      origins.record(endpoint.origin, BEGIN, moment);
    },
    recordConnection: (origin, moment) =>
      origins.find(origin).state === 'probing' ? origins.record(origin, SUCCESS, moment) : NO_CHANGE,
    recordAnswerElsewhere: (origin, moment) =>
      origins.find(origin).state === 'open' ? probeOrigin(origin, SUCCESS, moment) : NO_CHANGE,
    record: (endpoint, outcome, moment) => {
      const { ofOrigin } = evidenceOf(outcome);
      const hasHealthChanged = learn(endpoint, outcome, moment);
      return { ...(ofOrigin ? origins.record(endpoint.origin, ofOrigin, moment) : NO_CHANGE), hasHealthChanged };
    },
    recordProbe: ({ hookId, origin }, outcome, moment) => {
      const endpoint = endpoints.get(hookId);
      const { ofHook, ofOrigin } = evidenceOf(outcome);
      if (endpoint !== undefined) {
        advanceHook(endpoint, BEGIN, beginProbe(ofHook, moment));
        learn(endpoint, outcome, moment);
      }
      if (ofOrigin === undefined) return { ...NO_CHANGE, hasHealthChanged: false };
      return { ...probeOrigin(origin, ofOrigin, moment), hasHealthChanged: false };
    },
    findPause: (endpoint, nowMs) => {
      const ofHook = describePause(endpoint.breaker, nowMs, endpoint.breaker.isAsked ? 'retry_after' : 'failures');
      const ofOrigin = describePause(origins.find(endpoint.origin), nowMs, 'no_connection');
      if (ofHook === undefined || ofOrigin === undefined) return ofHook ?? ofOrigin;
      return ofHook.untilMs >= ofOrigin.untilMs ? ofHook : ofOrigin;
    },
    listOriginBreakers: () => origins.list(),
  };
}

/** A success counts as if the pause had just ended. */
function beginProbe(event: BreakerEvent | undefined, moment: BreakerMoment): BreakerMoment {
  return event?.kind === 'success' ? { ...moment, nowMs: Number.POSITIVE_INFINITY } : moment;
}

/** Whether the count of failures changed, which belongs into its row. */
function learn(endpoint: Endpoint, outcome: Outcome, moment: BreakerMoment): boolean {
  const { fails } = endpoint.health;
  const { ofHook } = evidenceOf(outcome);
  endpoint.health = updateHealth(endpoint.health, outcome, moment.nowMs);
  if (ofHook !== undefined) advanceHook(endpoint, ofHook, moment);
  return endpoint.health.fails !== fails;
}

function advanceHook(endpoint: Endpoint, event: BreakerEvent, moment: BreakerMoment): void {
  endpoint.breaker = advanceBreaker(endpoint.breaker, event, { ...moment, rules: HOOK_RULES });
}

function describePause(breaker: Breaker, nowMs: number, reason: Pause['reason']): Pause | undefined {
  if (breaker.state !== 'open' || breaker.untilMs <= nowMs) return undefined;
  return { sinceMs: breaker.sinceMs, untilMs: breaker.untilMs, reason };
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
    breaker: restoreBreaker({
      isPaused: row.parked === 1 && row.pause_reason !== 'no_connection',
      // A hook that could not be connected to has not failed itself.
      fails: row.pause_reason === 'no_connection' ? 0 : row.fails,
      openings: row.openings,
      sinceMs: row.paused_since_ms ?? row.next_at_ms,
      untilMs: row.next_at_ms,
    }),
  };
}
