/**
 * One endpoint in a worker's memory: its deliveries in memory, its health, and the breaker of its hook. Only the functions
 * of this file change it.
 *
 * ```
 * loading ─read found all that is due─→ loaded ─nothing unstored, and its row sleeps─→ forgotten
 *    │ ↑                                 │  │
 *    │ └─enqueue, new version, put back──┘  │
 *    └───────paused, held, gone, moved──────┴─→ draining ─nothing unstored─→ forgotten
 * ```
 */
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

/** `draining`: nothing more is loaded or sent; the endpoint is forgotten once the results of its deliveries are stored. */
export type EndpointState = 'loading' | 'loaded' | 'draining';

export interface Endpoint {
  readonly hookId: number;
  readonly ownerId: string;
  readonly origin: string;
  readonly shard: number;
  readonly state: EndpointState;
  /** Of its row when it was last read. */
  readonly version: number;
  /** Rises with every enqueue, so that a read which began before the enqueue does not count as having read all. */
  readonly enqueues: number;
  /** Rises with every result that is stored: what a read found that began before may not be pending any more. */
  readonly stored: number;
  /** When a delivery was last found for it; monotonic. */
  readonly lastFoundMs: number;
  /** Ids of its deliveries that wait in memory, are being sent, or whose results are not stored. */
  readonly unstored: ReadonlySet<number>;
  /** The last read found as many as it asked for: there are more. */
  readonly isCrowded: boolean;
  readonly health: EndpointHealth;
  readonly breaker: Breaker;
}

type MutableEndpoint = { -readonly [Field in keyof Endpoint]: Endpoint[Field] } & { unstored: Set<number> };

export function createEndpoint(row: DueEndpoint): Endpoint {
  const endpoint: MutableEndpoint = {
    hookId: row.hook_id,
    ownerId: row.owner_id,
    origin: row.origin,
    shard: row.shard,
    state: 'loading',
    version: row.version,
    enqueues: 0,
    stored: 0,
    lastFoundMs: Number.NEGATIVE_INFINITY,
    unstored: new Set(),
    isCrowded: false,
    health: { fails: row.fails, failingSinceMs: row.failing_since_ms },
    breaker: readBreaker(row),
  };
  return endpoint;
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

/** Its row was read again. Another version means that something was enqueued or changed. */
export function noteVersion(endpoint: Endpoint, version: number): void {
  if (endpoint.version === version) return;
  (endpoint as MutableEndpoint).version = version;
  load(endpoint);
}

/** Something was enqueued to it. */
export function countEnqueue(endpoint: Endpoint): void {
  (endpoint as MutableEndpoint).enqueues += 1;
  load(endpoint);
}

/** More deliveries have to be read for it. */
function load(endpoint: Endpoint): void {
  if (endpoint.state === 'loaded') (endpoint as MutableEndpoint).state = 'loading';
}

/** A read of its deliveries has ended, which began after `enqueues` enqueues. */
export function noteRead(endpoint: Endpoint, read: { readonly isCrowded: boolean; readonly enqueues: number }): void {
  if (endpoint.state === 'draining') return;
  const isLoaded = !read.isCrowded && read.enqueues === endpoint.enqueues;
  (endpoint as MutableEndpoint).isCrowded = read.isCrowded;
  (endpoint as MutableEndpoint).state = isLoaded ? 'loaded' : 'loading';
}

/** Takes a delivery into memory. False if it is there already, or the endpoint drains. */
export function addDelivery(endpoint: Endpoint, deliveryId: number, monotonicMs: number): boolean {
  if (endpoint.state === 'draining' || endpoint.unstored.has(deliveryId)) return false;
  const { unstored } = endpoint as MutableEndpoint;
  unstored.add(deliveryId);
  (endpoint as MutableEndpoint).lastFoundMs = monotonicMs;
  return true;
}

/** The delivery was not sent, and is pending in its row. */
export function dropDelivery(endpoint: Endpoint, deliveryId: number): void {
  (endpoint as MutableEndpoint).unstored.delete(deliveryId);
  load(endpoint);
}

/** The result of an attempt is stored. */
export function noteStored(endpoint: Endpoint): void {
  (endpoint as MutableEndpoint).stored += 1;
}

/** The result of the delivery's attempt is stored; it has no place in memory any more. */
export function forgetDelivery(endpoint: Endpoint, deliveryId: number): void {
  (endpoint as MutableEndpoint).unstored.delete(deliveryId);
}

/** Nothing more is loaded for it: it is paused, held, gone or moved, or its shard belongs to another worker. */
export function startDraining(endpoint: Endpoint): void {
  (endpoint as MutableEndpoint).state = 'draining';
}

export function hasDrained({ state, unstored }: Endpoint): boolean {
  return state === 'draining' && unstored.size === 0;
}

export function advanceHook(endpoint: Endpoint, event: BreakerEvent, moment: BreakerMoment): void {
  (endpoint as MutableEndpoint).breaker = advanceBreaker(endpoint.breaker, event, { ...moment, rules: HOOK_RULES });
}

/** Updates health and breaker. Returns whether the count of failures changed, which belongs into the row. */
export function recordOfHook(endpoint: Endpoint, outcome: Outcome, moment: BreakerMoment): boolean {
  const { fails } = endpoint.health;
  const { ofHook } = toBreakerEvents(outcome);
  (endpoint as MutableEndpoint).health = updateHealth(endpoint.health, outcome, moment.nowMs);
  if (ofHook !== undefined) advanceHook(endpoint, ofHook, moment);
  return endpoint.health.fails !== fails;
}
