/**
 * Runs the loop of dispatch cycles and the loop that renews shard leases, and stops without losing a delivery. A cycle begins when
 * this process enqueued a delivery that is not in memory, when an attempt has ended or its result is stored while more deliveries wait,
 * and a few times a second, to find retries and deliveries that other processes enqueued. Deliveries that this process has just
 * committed are sent without a cycle.
 */
import { createInFlight } from '../../../database/in-flight.ts';
import type { Store } from '../../../database/store.ts';
import type { SecretCipher } from '../../../encryption/secret-cipher.ts';
import { describeError } from '../../../errors.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { Metrics } from '../../../telemetry/metrics.ts';
import type { Worker } from '../../../workers/worker.ts';
import type { World } from '../../../world.ts';
import type { AddressGuard } from '../../addresses/address-guard.ts';
import { countPauses } from '../../hooks/hook-status-store.ts';
import { createSecretCache } from '../../hooks/secret-cache.ts';
import { dropDelivery } from '../hook-queues/hook-queue.ts';
import {
  createHookQueueTable,
  drain,
  type HookQueueTable,
  listHookQueues,
  recordEnqueue,
} from '../hook-queues/hook-queue-table.ts';
import type { CommittedDelivery } from '../queue/committed-delivery.ts';
import { reopenUnverified } from '../queue/delivery-restart-store.ts';
import { countPendingDeliveries, type EnqueueVersions } from '../queue/delivery-store.ts';
import { createSender } from '../send/send.ts';
import { type AttemptDependencies, createAttempts } from './attempt.ts';
import { createCommittedBuffer } from './committed-buffer.ts';
import { createCyclePace } from './cycle-pace.ts';
import { createDeliveryMetrics } from './delivery-metrics.ts';
import { beginAttempts, runDispatchCycle } from './dispatch-cycle.ts';
import { createDispatchFailureLog } from './dispatch-failure-log.ts';
import { createDueScan } from './due-scan.ts';
import { createLapseLog } from './lease-lapse-log.ts';
import { createManualAttempts, type ManualAttempts } from './manual-attempts.ts';
import { createResultWriter } from './result-writer.ts';
import { createShardLeases, RENEW_AGAIN_MS, RENEW_EVERY_MS } from './shard-leases.ts';
import { storeUntilDone } from './store-until-done.ts';
import { createWakeSignal } from './wake-signal.ts';

const POLL_MS = 200;
/** The wait between cycles. It collects deliveries into batches, since the cost of a statement hardly depends on their number. */
const CYCLE_EVERY_MS = 5;
/** The wait while deliveries in memory wait for attempts under way to end. */
const BUSY_CYCLE_EVERY_MS = 2;
const STOP_GIVE_UP_MS = 3000;

export interface DeliveryWorkerDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly cipher: SecretCipher;
  readonly guard: AddressGuard;
  /** Certificate authorities (PEM) that are trusted; those of Node unless given. */
  readonly ca?: readonly string[] | undefined;
  readonly onAttempt?: AttemptDependencies['onAttempt'];
  readonly room?: HookQueueTable['room'] | undefined;
}

export interface DeliveryWorker extends Worker {
  /** Must be called after this process enqueued deliveries: to these hooks, or to any hook if not given. */
  wake(hookIds?: readonly number[]): void;
  /** Takes deliveries that this process has just committed; they are sent at once if no others of their hooks wait before them. */
  takeCommitted(committed: readonly CommittedDelivery[], versions: EnqueueVersions): void;
  /** Attempts that a person requests; also possible in a worker that was not started. */
  readonly manual: Pick<ManualAttempts, 'test' | 'redeliver'>;
}

export function createDeliveryWorker(given: DeliveryWorkerDependencies): DeliveryWorker {
  const components = createComponents(given);
  const stopping = new AbortController();
  let loops: Loops | undefined;
  let stopped: Promise<void> | undefined;
  return {
    name: 'deliveries',
    start: () => {
      const leasing = runLeaseLoop(components, stopping.signal);
      loops = { leasing, dispatching: runDispatchLoop(components, stopping.signal) };
    },
    stop: () => {
      stopping.abort();
      components.signal.wake();
      stopped ??= stopComponents(components, loops);
      return stopped;
    },
    wake: (hookIds) => wakeFor(components, hookIds),
    takeCommitted: (committed, versions) => {
      const toRead = components.committed.add(committed, versions);
      wakeForCommitted(components, toRead);
      if (toRead.length < committed.length) sendSoon(components, stopping.signal);
    },
    manual: components.manual,
  };
}

interface Loops {
  readonly leasing: Promise<void>;
  readonly dispatching: Promise<void>;
}

type Components = ReturnType<typeof createComponents>;

/** Builds the components in order: each gets only components that were built before it. */
function createComponents(given: DeliveryWorkerDependencies) {
  const { store, world, log } = given;
  const signal = createWakeSignal();
  const leases = createShardLeases(store, world);
  const table = createHookQueueTable(world, given.room);
  const committed = createCommittedBuffer(table);
  const scan = createDueScan({ store, world, leases, signal });
  const writer = createResultWriter({ store, world, log, workerId: leases.workerId, table, scan, signal });
  const doubts = { store, world, log, writer, scan, inFlight: createInFlight(), abandoning: new AbortController() };
  const sender = createSender({
    guard: given.guard,
    nowMs: () => world.nowMs(),
    monotonicMs: () => world.monotonicMs(),
    onDoubt: (deliveryIds, origin) => void doubts.inFlight.track(() => resendUnverified(doubts, deliveryIds, origin)),
    ca: given.ca,
  });
  const makeAttempt = createAttempts({
    world,
    log,
    metrics: createMetrics(given, table),
    sender,
    readSecrets: createSecretCache(given.cipher),
    onAttempt: given.onAttempt,
  });
  const manual = createManualAttempts({ store, world, log, table, writer, scan, makeAttempt });
  const sends = createInFlight();
  /** Aborted once the last result is stored during a stop. */
  const settled = new AbortController();
  return {
    store,
    world,
    log,
    failures: createDispatchFailureLog(log),
    signal,
    leases,
    table,
    committed,
    scan,
    writer,
    doubts,
    sender,
    makeAttempt,
    manual,
    sends,
    settled,
  };
}

function createMetrics({ store, world, metrics }: DeliveryWorkerDependencies, table: HookQueueTable) {
  return createDeliveryMetrics(metrics, {
    countPending: () => countPendingDeliveries(store),
    countUnderWay: () => table.uncommitted,
    listOriginBreakers: () => table.origins.list(world.nowMs()),
    countPaused: () => countPauses(store, world.nowMs()),
  });
}

/** Wakes the dispatch loop. A scan is needed only for hook queues that are not in memory. */
function wakeFor({ table, scan, signal }: Components, hookIds: readonly number[] | undefined): void {
  const areInMemory = hookIds?.map((hookId) => recordEnqueue(table, hookId)) ?? [false];
  if (areInMemory.every(Boolean)) signal.wake();
  else scan.request();
}

/** Wakes for deliveries of this worker's shards only: a scan finds no others, and comes anyway after a renewal that takes a shard. */
function wakeForCommitted(components: Components, toRead: readonly CommittedDelivery[]): void {
  const own = toRead.filter(({ shard }) => components.leases.epochOf(shard) !== undefined).map(({ hookId }) => hookId);
  if (own.length > 0) wakeFor(components, own);
}

/** Sends in a later turn of the event loop, so that callers that wait for the commit are answered first. */
function sendSoon(components: Components, stopping: AbortSignal): void {
  setImmediate(() => {
    if (!stopping.aborted) void components.sends.track(() => sendCommitted(components));
  });
}

async function sendCommitted(components: Components): Promise<void> {
  try {
    await beginAttempts(components, []);
  } catch (error) {
    components.failures.begin(error);
    components.signal.wake();
  }
}

/** Sends deliveries again whose receiver sent more responses than it got requests, since they may have got the wrong response. */
async function resendUnverified(
  { store, world, log, writer, scan, abandoning }: Components['doubts'],
  deliveryIds: readonly number[],
  origin: string,
): Promise<void> {
  await writer.flush();
  const reopen = () => reopenUnverified(store, deliveryIds, world.nowMs());
  const what = 'deliveries with unverified responses';
  const options = { what, abandoned: abandoning.signal, retryAfter: 'an outage' } as const;
  const count = await storeUntilDone({ store, world, log }, reopen, options);
  if (count === undefined) return log.error({ origin }, 'Cannot requeue deliveries with unverified responses');
  log.warn({ origin, count }, 'A receiver sent a response without a request; sending affected deliveries again');
  scan.request();
}

async function runDispatchLoop(components: Components, stopping: AbortSignal): Promise<void> {
  const { world, log, signal, scan, table, leases, failures } = components;
  const pace = createCyclePace(world);
  const recordLeases = createLapseLog({ world, log });
  while (!stopping.aborted) {
    await pace(table.scheduler.waiting > 0 ? BUSY_CYCLE_EVERY_MS : CYCLE_EVERY_MS);
    signal.clear();
    try {
      await runDispatchCycle(components);
      // Without leases the cycle reads nothing, so its end does not show that the database is back.
      if (leases.areHeld()) failures.end();
    } catch (error) {
      failures.begin(error);
      await world.sleep(POLL_MS);
    }
    recordLeases(leases.areHeld());
    // While the leases have lapsed no scan is made, so an overdue scan must not shorten the wait.
    if (!stopping.aborted) await signal.wait(leases.areHeld() ? Math.min(POLL_MS, scan.waitMs()) : POLL_MS);
  }
}

/** Renews leases, also during a stop: without leases another worker would repeat the attempts that are under way. */
async function runLeaseLoop(components: Components, stopping: AbortSignal): Promise<void> {
  const { world, log, leases, table, scan, settled } = components;
  let hasFailed = false;
  while (!settled.signal.aborted) {
    const isLeaving = stopping.aborted;
    if (isLeaving) leaveShards(components);
    try {
      const lost = await leases.renew(createBusyTest(table));
      if (!stopping.aborted) drainLost(components, lost);
      hasFailed = false;
    } catch (error) {
      // Only the first of several failures is logged.
      if (!hasFailed) log.warn({ reason: describeError(error) }, 'Cannot renew the leases of shards; trying again');
      hasFailed = true;
    }
    // If a stop was requested meanwhile, shards are given back at once.
    if (stopping.aborted !== isLeaving) continue;
    scan.request();
    const isSoon = hasFailed || !leases.areHeld() || leases.areChanging();
    const waitMs = isSoon ? RENEW_AGAIN_MS : RENEW_EVERY_MS;
    await world.sleep(waitMs, isLeaving ? settled.signal : stopping).catch(() => {});
  }
}

/** Drops the deliveries that wait in memory. They are still pending in their rows, for the workers that take the shards. */
function leaveShards({ leases, table }: Pick<Components, 'leases' | 'table'>): void {
  leases.leave();
  for (const hookQueue of listHookQueues(table, () => true))
    for (const { id } of table.scheduler.drop(hookQueue.hookId)) dropDelivery(hookQueue, id);
}

/**
 * Drains hook queues of shards that another worker owns, will own, or owned for a while. Leases that have lapsed because the database is
 * away are not lost yet: their hook queues stay, and nothing is sent for them until a renewal shows who owns them.
 */
function drainLost({ table, leases }: Pick<Components, 'table' | 'leases'>, lost: ReadonlySet<number>): void {
  const isOfOther = (shard: number) => lost.has(shard) || (leases.areHeld() && leases.epochOf(shard) === undefined);
  for (const hookQueue of listHookQueues(table, ({ shard }) => isOfOther(shard))) drain(table, hookQueue);
}

/** The set of busy shards is built at the first call of the test, which comes after the leases were renewed. */
function createBusyTest(table: HookQueueTable): (shard: number) => boolean {
  let busy: ReadonlySet<number> | undefined;
  return (shard) => {
    busy ??= new Set(listHookQueues(table, ({ deliveryIds }) => deliveryIds.size > 0).map((one) => one.shard));
    return busy.has(shard);
  };
}

/** Waits until attempts under way have ended and are stored, or until the database was away for too long. */
async function stopComponents(components: Components, loops: Loops | undefined): Promise<void> {
  const { leases, sends, writer, doubts, sender, manual, settled } = components;
  await Promise.all([loops?.dispatching, manual.stop()]);
  await sends.settle();
  const giveUp = setTimeout(() => {
    writer.abandon();
    doubts.abandoning.abort();
  }, STOP_GIVE_UP_MS);
  await writer.flush();
  await doubts.inFlight.settle();
  clearTimeout(giveUp);
  doubts.abandoning.abort();
  await writer.stopWaking();
  settled.abort();
  await loops?.leasing;
  await sender.close();
  if (loops !== undefined) await leases.release().catch(() => {});
}
