/** One endpoint in a worker's memory: the deliveries in hand, how it fares, and the breaker of its hook. */
import type { DueEndpoint } from '../queue/delivery-queue-store.ts';
import { type Outcome, toBreakerEvents } from '../schedule/attempt-outcome.ts';
import {
  advanceBreaker,
  type Breaker,
  type BreakerEvent,
  type BreakerMoment,
  HOOK_RULES,
  restoreBreaker,
} from '../schedule/breaker.ts';
import { type EndpointHealth, updateHealth } from '../schedule/disable-failing-hook.ts';

export interface Endpoint {
  readonly hookId: number;
  readonly ownerId: string;
  readonly origin: string;
  readonly shard: number;
  /** Of its row when it was last read. */
  version: number;
  /** The last read found all that is due. */
  hasReadAll: boolean;
  /** The last read of a few found more than these. */
  isCrowded: boolean;
  /** Rises with every enqueue, so that a read which began before the enqueue does not count as having read all. */
  enqueues: number;
  /** When a delivery was last found for it; monotonic. */
  lastFoundMs: number;
  /** Nothing more is loaded: it is paused, held or gone. It is forgotten once nothing is under way. */
  isClosed: boolean;
  /** Ids of its deliveries that wait in memory, are being sent, or whose results are not stored. */
  readonly known: Set<number>;
  health: EndpointHealth;
  breaker: Breaker;
}

export function createEndpoint(row: DueEndpoint): Endpoint {
  return {
    hookId: row.hook_id,
    ownerId: row.owner_id,
    origin: row.origin,
    shard: row.shard,
    version: row.version,
    hasReadAll: false,
    isCrowded: false,
    enqueues: 0,
    lastFoundMs: Number.NEGATIVE_INFINITY,
    isClosed: false,
    known: new Set(),
    health: { fails: row.fails, failingSinceMs: row.failing_since_ms },
    breaker: readBreaker(row),
  };
}

/** The hook's part of the row: a hook whose origin could not be connected to has not failed itself. */
function readBreaker(row: DueEndpoint): Breaker {
  const isOfOrigin = row.pause_reason === 'no_connection';
  return restoreBreaker({
    isPaused: row.parked === 1 && !isOfOrigin,
    fails: isOfOrigin ? 0 : row.fails,
    openings: row.openings,
    sinceMs: row.paused_since_ms ?? row.next_at_ms,
    untilMs: row.next_at_ms,
  });
}

export function advanceHook(endpoint: Endpoint, event: BreakerEvent, moment: BreakerMoment): void {
  endpoint.breaker = advanceBreaker(endpoint.breaker, event, { ...moment, rules: HOOK_RULES });
}

/** Updates health and breaker. Returns whether the count of failures changed, which belongs into the row. */
export function recordOfHook(endpoint: Endpoint, outcome: Outcome, moment: BreakerMoment): boolean {
  const { fails } = endpoint.health;
  const { ofHook } = toBreakerEvents(outcome);
  endpoint.health = updateHealth(endpoint.health, outcome, moment.nowMs);
  if (ofHook !== undefined) advanceHook(endpoint, ofHook, moment);
  return endpoint.health.fails !== fails;
}
