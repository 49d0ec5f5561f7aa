/**
 * The endpoints that a worker has in memory, the deliveries of each that wait, and what may be sent next. Every stage of
 * the worker reads this one table and changes it by these functions; what has to be stored, they return as values. A row of
 * `endpoint_queue` has as much as is needed to begin again after a crash.
 */
import type { World } from '../../../world.ts';
import { type AttemptResult, OUTSIDE_SHARDS } from '../queue/attempt-result-store.ts';
import type { DueEndpoint, WaitingRow } from '../queue/delivery-queue-store.ts';
import { toLane } from '../queue/delivery-state.ts';
import type { Sleep } from '../queue/endpoint-change-store.ts';
import { allowedAttempts, type BreakerMoment, CLOSED_BREAKER } from '../schedule/breaker.ts';
import { CAPS } from '../schedule/concurrency-limits.ts';
import { createOriginBreakers, type OriginBreakers } from '../schedule/origin-breakers.ts';
import { createScheduler, type Scheduler } from '../schedule/scheduler.ts';
import type { Job } from '../schedule/turn-tree.ts';
import {
  addDelivery,
  advanceHook,
  countEnqueue,
  createEndpoint,
  dropDelivery,
  type Endpoint,
  forgetDelivery,
  hasDrained,
  noteStored,
  noteVersion,
  startDraining,
} from './delivery-endpoint.ts';

/** Below so many waiting deliveries an endpoint gets more. */
const REFILL_BELOW = 16;
/** An endpoint stays in memory for so long after its last delivery: to put it to sleep and to find it again costs more. */
const LINGER_MS = 250;

export interface EndpointTable {
  readonly world: Pick<World, 'nowMs' | 'monotonicMs' | 'random'>;
  /** By the id of the hook. */
  readonly endpoints: Map<number, Endpoint>;
  readonly origins: OriginBreakers;
  readonly scheduler: Scheduler<Job>;
  /** Deliveries that are being sent, or whose results are not stored. */
  unstored: number;
}

export function createEndpointTable(world: EndpointTable['world']): EndpointTable {
  const endpoints = new Map<number, Endpoint>();
  const origins = createOriginBreakers();
  const scheduler = createScheduler<Job>({
    caps: CAPS,
    limitsOfOrigin: (origin) => origins.limits(origin, world.nowMs()),
    allowedOfHook: (hookId) => allowedAttempts(endpoints.get(hookId)?.breaker ?? CLOSED_BREAKER, world.nowMs()),
  });
  return { world, endpoints, origins, scheduler, unstored: 0 };
}

export function takeMoment({ world }: EndpointTable): BreakerMoment {
  return { nowMs: world.nowMs(), random: world.random() };
}

/** Endpoints for which `test` is true, `limit` at most. */
export function listEndpoints(
  { endpoints }: EndpointTable,
  test: (endpoint: Endpoint) => boolean,
  limit = Number.POSITIVE_INFINITY,
): Endpoint[] {
  const found: Endpoint[] = [];
  for (const endpoint of endpoints.values()) {
    if (found.length >= limit) break;
    if (test(endpoint)) found.push(endpoint);
  }
  return found;
}

/** Takes a due row in. Undefined while an earlier entry of the endpoint drains, or belongs to another origin. */
export function noteDue({ endpoints }: EndpointTable, row: DueEndpoint): Endpoint | undefined {
  const found = endpoints.get(row.hook_id);
  if (found === undefined || hasDrained(found)) {
    const endpoint = createEndpoint(row);
    endpoints.set(row.hook_id, endpoint);
    return endpoint;
  }
  if (found.state === 'draining' || found.origin !== row.origin) return undefined;
  noteVersion(found, row.version);
  return found;
}

/** Something was enqueued to the hook. False when its endpoint is not in memory. */
export function noteEnqueue({ endpoints }: EndpointTable, hookId: number): boolean {
  const found = endpoints.get(hookId);
  if (found === undefined) return false;
  countEnqueue(found);
  return true;
}

/** Endpoints that need more deliveries in memory, `limit` at most. */
export function listToRefill(table: EndpointTable, limit: number): Endpoint[] {
  const countWaiting = ({ hookId }: Endpoint) =>
    table.scheduler.countWaiting(hookId, 'first') + table.scheduler.countWaiting(hookId, 'retry');
  return listEndpoints(table, (one) => one.state === 'loading' && countWaiting(one) < REFILL_BELOW, limit);
}

/** Queues a delivery in memory, unless it is there already. */
export function admit({ scheduler, world }: EndpointTable, endpoint: Endpoint, row: WaitingRow): void {
  if (!addDelivery(endpoint, row.id, world.monotonicMs())) return;
  const { hookId, origin, ownerId } = endpoint;
  scheduler.add({ id: row.id, hookId, origin, ownerId, lane: toLane(row.lane), bodyBytes: row.body_bytes });
}

/** The deliveries whose turn it is. */
export function pickJobs(table: EndpointTable): Job[] {
  const jobs: Job[] = [];
  for (let job = pickJob(table); job !== undefined; job = pickJob(table)) jobs.push(job);
  return jobs;
}

/** The next delivery; it counts as unstored from now on. */
export function pickJob(table: EndpointTable): Job | undefined {
  if (table.unstored >= CAPS.worker) return undefined;
  const job = table.scheduler.next();
  if (job === undefined) return undefined;
  table.unstored += 1;
  beginAttempt(table, job);
  return job;
}

/** Tells the breakers, which may count it as a probe. */
function beginAttempt(table: EndpointTable, { hookId }: Pick<Job, 'hookId'>): void {
  const endpoint = table.endpoints.get(hookId);
  if (endpoint === undefined) return;
  const moment = takeMoment(table);
  advanceHook(endpoint, { kind: 'begin' }, moment);
  table.origins.record(endpoint.origin, { kind: 'begin' }, moment);
}

/** The job was not sent: it is as if it had never been picked. */
export function putBack(table: EndpointTable, job: Job): void {
  table.unstored -= 1;
  table.scheduler.finish(job);
  const endpoint = table.endpoints.get(job.hookId);
  if (endpoint === undefined) return;
  dropDelivery(endpoint, job.id);
  forgetWhenDrained(table, endpoint);
}

/** Loads nothing more, and forgets what waits in memory; it is still pending in its rows. */
export function drain(table: EndpointTable, endpoint: Endpoint): void {
  startDraining(endpoint);
  for (const job of table.scheduler.drop(endpoint.hookId)) dropDelivery(endpoint, job.id);
  forgetWhenDrained(table, endpoint);
}

function forgetWhenDrained(table: EndpointTable, endpoint: Endpoint): void {
  if (hasDrained(endpoint)) forget(table, endpoint);
}

function forget({ endpoints }: EndpointTable, endpoint: Endpoint): void {
  if (endpoints.get(endpoint.hookId) === endpoint) endpoints.delete(endpoint.hookId);
}

/** Endpoints that may sleep once `stored` are stored: those without any other delivery that is due. */
export function listSleeps(table: EndpointTable, stored: readonly AttemptResult[]): Sleep[] {
  return listIdle(table, stored).map(({ hookId, version }) => ({ hookId, version }));
}

/** Whether an endpoint may sleep now. */
export function hasSleep(table: EndpointTable): boolean {
  return listIdle(table, [], 1).length > 0;
}

function listIdle(table: EndpointTable, stored: readonly AttemptResult[], limit?: number): Endpoint[] {
  const storedIds = new Set(stored.map((one) => one.deliveryId));
  const lastFoundBeforeMs = table.world.monotonicMs() - LINGER_MS;
  const isIdle = (one: Endpoint) =>
    one.state === 'loaded' && one.lastFoundMs <= lastFoundBeforeMs && isWithin(one.unstored, storedIds);
  return listEndpoints(table, isIdle, limit);
}

function isWithin(some: ReadonlySet<number>, all: ReadonlySet<number>): boolean {
  if (some.size > all.size) return false;
  for (const id of some) if (!all.has(id)) return false;
  return true;
}

type StoredAttempt = Pick<AttemptResult, 'hookId' | 'deliveryId' | 'epoch'>;

/** Results and sleeps are stored: forgets these deliveries, and the endpoints that sleep. */
export function markStored(table: EndpointTable, stored: readonly StoredAttempt[], sleeps: readonly Sleep[]): void {
  for (const { hookId, deliveryId, epoch } of stored) {
    const endpoint = table.endpoints.get(hookId);
    if (endpoint !== undefined) noteStored(endpoint);
    // A manual attempt takes no place in memory; the same delivery may have one, and its own attempt under way.
    if (epoch === OUTSIDE_SHARDS.epoch) continue;
    table.unstored -= 1;
    if (endpoint === undefined) continue;
    forgetDelivery(endpoint, deliveryId);
    forgetWhenDrained(table, endpoint);
  }
  for (const { hookId } of sleeps) {
    const endpoint = table.endpoints.get(hookId);
    // An enqueue meanwhile has made its row due again, and only an endpoint in memory is read without a scan.
    if (endpoint?.state === 'loaded' && endpoint.unstored.size === 0) forget(table, endpoint);
  }
}
