/**
 * One round: look which endpoints are due, take the first few deliveries of each into memory, let the scheduler choose
 * whose turn it is, read what the chosen carry, and send. Every step is one statement for many.
 *
 * What is sent and not yet stored is never more than the scheduler's cap for the worker, so a crash repeats at most that.
 */
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import { type ContentRow, readContents, readWaiting } from '../queue/delivery-queue-store.ts';
import { cancelEndpointStep, holdSeenEndpointStep } from '../queue/delivery-store.ts';
import { OUTSIDE_SHARDS, type Rest, type Settlement } from '../queue/settlement-store.ts';
import type { Job, Scheduler } from '../schedule/scheduler.ts';
import { CAPS } from '../schedule/slots.ts';
import { ATTEMPT_DEADLINE_MS } from '../send/send.ts';
import { describeSettlement, type MakeAttempt } from './attempt.ts';
import type { DueLook } from './due-look.ts';
import type { Endpoint, EndpointBook } from './endpoint-book.ts';
import type { EndpointControl } from './endpoint-control.ts';
import type { Settler } from './settler.ts';
import type { ShardKeeper } from './shard-keeper.ts';

/** Deliveries of one endpoint and lane in memory. */
const FETCH = 64;
/** Below this an endpoint gets more. */
const LOW_WATER = 16;
/** Endpoints that get more in one round. */
const MAX_FETCHES = 256;
/** An endpoint stays in hand for so long after its last delivery: putting it to rest and finding it again costs more. */
const LINGER_MS = 250;

export interface DeliveryRoundParts {
  readonly store: Store;
  readonly world: World;
  readonly keeper: ShardKeeper;
  readonly book: EndpointBook;
  readonly scheduler: Scheduler<Job>;
  readonly settler: Settler;
  readonly control: EndpointControl;
  readonly dueLook: DueLook;
  readonly makeAttempt: MakeAttempt;
  /** An attempt has ended, so another may begin. */
  readonly onEnd: () => void;
}

export interface DeliveryRound {
  run(): Promise<void>;
  /** Which endpoints may rest once these are settled: those of which all that was due is settled then. */
  chooseRests(settled: readonly Settlement[]): Rest[];
  onStored(settled: readonly Settlement[], rests: readonly Rest[]): void;
  /** Sent or being sent, and not yet stored. */
  readonly unsettled: number;
}

export function createDeliveryRound(parts: DeliveryRoundParts): DeliveryRound {
  const { store, world, keeper, book, scheduler, settler, control, dueLook } = parts;
  let unsettled = 0;

  async function fetchWaiting(): Promise<void> {
    const hungry = book.list(isHungry, MAX_FETCHES);
    if (hungry.length === 0) return;
    const requests = hungry.map((endpoint) => ({
      hookId: endpoint.hookId,
      limit: fetchLimit(endpoint),
      enqueues: endpoint.enqueues,
    }));
    const rows = Map.groupBy(await readWaiting(store, requests, world.nowMs()), (row) => row.hook_id);
    hungry.forEach((endpoint, index) => {
      const found = rows.get(endpoint.hookId) ?? [];
      const { limit, enqueues } = requests[index]!;
      const retries = found.filter((row) => row.lane === 1).length;
      endpoint.isDry = retries < limit && found.length - retries < limit && endpoint.enqueues === enqueues;
      for (const row of found) if (!endpoint.isClosed && !endpoint.known.has(row.id)) admit(endpoint, row);
    });
  }

  function isHungry({ isDry, isClosed, hookId }: Endpoint): boolean {
    if (isDry || isClosed) return false;
    return scheduler.countWaiting(hookId, 'first') + scheduler.countWaiting(hookId, 'retry') < LOW_WATER;
  }

  // What is known is read again and passed over: it is still pending in its row.
  function fetchLimit(endpoint: Endpoint): number {
    return FETCH + endpoint.known.size;
  }

  function admit(endpoint: Endpoint, row: { id: number; lane: number; body_bytes: number }): void {
    const { hookId, origin, ownerId } = endpoint;
    endpoint.known.add(row.id);
    endpoint.lastFoundMs = world.monotonicMs();
    const lane = row.lane === 0 ? 'first' : 'retry';
    scheduler.add({ id: row.id, hookId, origin, ownerId, lane, bodyBytes: row.body_bytes });
  }

  async function dispatch(): Promise<void> {
    const jobs = chooseJobs();
    if (jobs.length === 0) return;
    const [contents, attemptIds] = await prepareJobs(jobs).catch((error: unknown) => {
      for (const job of jobs) putBack(job);
      throw error;
    });
    const contentById = new Map(contents.map((content) => [content.id, content]));
    for (const [index, job] of jobs.entries()) void deliver(job, contentById.get(job.id), attemptIds[index]!);
  }

  function prepareJobs(jobs: readonly Job[]): Promise<[contents: ContentRow[], attemptIds: number[]]> {
    return Promise.all([readContents(store, jobs), store.makeIds(jobs.length)]);
  }

  function chooseJobs(): Job[] {
    const jobs: Job[] = [];
    while (unsettled < CAPS.worker) {
      const job = scheduler.next();
      if (job === undefined) break;
      unsettled += 1;
      const endpoint = book.endpoints.get(job.hookId);
      if (endpoint !== undefined) book.begin(endpoint, { nowMs: world.nowMs(), random: world.random() });
      jobs.push(job);
    }
    return jobs;
  }

  /** It was not sent: it is as if it had never been taken. */
  function putBack(job: Job): void {
    unsettled -= 1;
    scheduler.finish(job);
    const endpoint = book.endpoints.get(job.hookId);
    if (endpoint === undefined) return;
    endpoint.known.delete(job.id);
    endpoint.isDry = false;
    control.forgetWhenDone(endpoint);
  }

  async function deliver(job: Job, content: ContentRow | undefined, attemptId: number): Promise<void> {
    const endpoint = book.endpoints.get(job.hookId);
    const epoch = endpoint === undefined ? undefined : keeper.epochOf(endpoint.shard);
    // Not pending any more, or the shard is another's now.
    if (endpoint === undefined || content === undefined || epoch === undefined) return putBack(job);
    // Taken since it was found, by an attempt that a person asked for.
    if (content.due_at_ms > world.nowMs()) return putBack(job);
    const origin = findOtherOrigin(content, endpoint);
    if (origin !== undefined) {
      putBack(job);
      return control.move(endpoint, origin);
    }
    const obstacle = findObstacle(content, endpoint);
    if (obstacle !== undefined) {
      putBack(job);
      return control.close(endpoint, obstacle);
    }
    const attempt = await parts.makeAttempt(content, ATTEMPT_DEADLINE_MS, () => {
      control.learnOfConnection(endpoint);
      parts.onEnd();
    });
    scheduler.finish(job);
    settler.settle(describeSettlement(attempt, { shard: endpoint.shard, epoch, attemptId }, world), attempt.report);
    control.learn(endpoint, attempt.report.outcome);
    // Whatever its breakers allow now.
    scheduler.recheck(endpoint.origin, endpoint.hookId);
    parts.onEnd();
  }

  function findObstacle(content: ContentRow, { version }: Endpoint) {
    if (content.url === null) return cancelEndpointStep(content.hook_id, world.nowMs());
    if (content.disabled_at_ms !== null) return holdSeenEndpointStep(content.hook_id, version, world.nowMs());
    return undefined;
  }

  function listRestable(settled: readonly Settlement[], limit?: number): Endpoint[] {
    const settledIds = new Set(settled.map((one) => one.deliveryId));
    const lastFoundBeforeMs = world.monotonicMs() - LINGER_MS;
    const isRestable = (one: Endpoint) =>
      one.isDry && !one.isClosed && one.lastFoundMs <= lastFoundBeforeMs && isWithin(one.known, settledIds);
    return book.list(isRestable, limit);
  }

  return {
    run: async () => {
      if (dueLook.waitMs() === 0) await dueLook.run();
      await fetchWaiting();
      // Its turn to be looked at comes again after the others'.
      if (listRestable([], 1).length > 0) settler.nudge();
      await dispatch();
    },
    chooseRests: (settled) => listRestable(settled).map(({ hookId, version }) => ({ hookId, version })),
    onStored: (settled, rests) => {
      for (const { hookId, deliveryId, epoch } of settled) {
        if (epoch !== OUTSIDE_SHARDS.epoch) unsettled -= 1;
        const endpoint = book.endpoints.get(hookId);
        endpoint?.known.delete(deliveryId);
        if (endpoint !== undefined) control.forgetWhenDone(endpoint);
      }
      for (const { hookId } of rests) {
        const endpoint = book.endpoints.get(hookId);
        // Not what was enqueued to meanwhile: its row is due again, and nobody would look.
        if (endpoint?.isDry && endpoint.known.size === 0) book.forget(endpoint);
      }
      parts.onEnd();
    },
    get unsettled() {
      return unsettled;
    },
  };
}

/** Its url was changed since it was found: what comes of an attempt would be told of the wrong destination. */
function findOtherOrigin({ url }: ContentRow, endpoint: Endpoint): string | undefined {
  if (url === null || !URL.canParse(url)) return undefined;
  const { origin } = new URL(url);
  return origin === endpoint.origin ? undefined : origin;
}

function isWithin(some: ReadonlySet<number>, all: ReadonlySet<number>): boolean {
  if (some.size > all.size) return false;
  for (const id of some) if (!all.has(id)) return false;
  return true;
}
