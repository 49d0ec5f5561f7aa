/**
 * Sends what is due. One round: look which endpoints are due, take the first few deliveries of each into memory, let the
 * scheduler choose whose turn it is, read what the chosen carry, send, and hand the results to the settler. Every step is
 * one statement for many. A round begins when something was enqueued, when a delivery has ended, and a few times a
 * second, which is when retries and the enqueues of other processes are seen.
 *
 * What is sent and not yet stored is never more than the scheduler's cap for the worker, so a crash repeats at most that.
 */

import type { Store } from '../database/store.ts';
import { describeError } from '../errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Vault } from '../vault/vault.ts';
import type { Worker } from '../workers/worker.ts';
import type { World } from '../world.ts';
import type { AddressGuard } from './address-guard.ts';
import { describeResult, recordAttempt } from './attempt-record.ts';
import { ENDPOINT_BREAKER } from './breaker.ts';
import { findDisableReason, nextStep } from './delivery.ts';
import { createDeliveryMetrics } from './delivery-metrics.ts';
import {
  type ContentRow,
  claimForTest,
  doubtSuccess,
  type Rest,
  readContents,
  readDueEndpoints,
  readWaiting,
  type Settlement,
  wakeOriginStep,
} from './delivery-queue-store.ts';
import { cancelEndpointStep, countPendingDeliveries, holdEndpointStep } from './delivery-store.ts';
import { createEndpointBook, type Endpoint } from './endpoint-book.ts';
import type { EncryptionType, ProfileName } from './hook.ts';
import { prepareRequest } from './profiles/profiles.ts';
import { CAPS, createScheduler, type Job } from './scheduler.ts';
import { createSecretCache } from './secret-cache.ts';
import { ATTEMPT_DEADLINE_MS, createSender, reportUnsent, type SendReport } from './send.ts';
import { createSettler } from './settler.ts';
import { BEAT_MS, createShardKeeper } from './shard-keeper.ts';

const POLL_MS = 200;
const DUE_PAGE = 2000;
/** Deliveries of one endpoint and lane in memory. */
const FETCH = 64;
/** Below this an endpoint gets more. */
const LOW_WATER = 16;
/** Endpoints that get more in one round. */
const MAX_FETCHES = 256;
/** A test's delivery falls to the workers so long after its own deadline. */
const TEST_GRACE_MS = 10_000;
const STOP_GIVE_UP_MS = 3000;

export interface DeliveryWorkerParts {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly vault: Vault;
  readonly guard: AddressGuard;
  /** Roots to trust besides those of Node. */
  readonly ca?: string;
}

export interface DeliveryWorker extends Worker {
  /** Something was enqueued by this process. */
  poke(): void;
  /**
   * Makes the one attempt of a delivery that was enqueued for later, until `deadlineMs` (since the epoch). Undefined
   * when a worker has it already or this one stops.
   */
  attemptNow(deliveryId: number, deadlineMs: number): Promise<SendReport | undefined>;
}

export function createDeliveryWorker(parts: DeliveryWorkerParts): DeliveryWorker {
  const { store, world, log } = parts;
  const readSecrets = createSecretCache(parts.vault);
  const book = createEndpointBook();
  const keeper = createShardKeeper(store, world);
  const scheduler = createScheduler<Job>({
    caps: CAPS,
    allowedOfOrigin: (origin) => book.allowedOfOrigin(origin, world.nowMs()),
    allowedOfHook: (hookId) => book.allowedOfHook(hookId, world.nowMs()),
  });
  const sender = createSender({
    guard: parts.guard,
    nowMs: () => world.nowMs(),
    monotonicMs: () => world.monotonicMs(),
    onDoubt: (ids, origin) => void doubt(ids, origin),
    ca: parts.ca,
  });
  const settler = createSettler({ store, world, log, owner: keeper.owner, chooseRests, onStored });
  const deliveryMetrics = createDeliveryMetrics(parts.metrics, {
    countPending: () => countPendingDeliveries(store),
    countUnderWay: () => unsettled,
    listOriginBreakers: () => book.listOriginBreakers(),
  });

  /** Sent or being sent, and not yet stored. */
  let unsettled = 0;
  let isDueLookWanted = true;
  let nextDueLookMs = 0;
  let duePlace = { afterMs: -1, afterHookId: -1 };
  let isStopping = false;
  let wake: (() => void) | undefined;
  let isAwake = false;
  let loop: Promise<void> | undefined;
  let heart: Promise<void> | undefined;
  const stopSignal = new AbortController();

  function pump(): void {
    isAwake = true;
    wake?.();
  }

  function poke(): void {
    isDueLookWanted = true;
    pump();
  }

  async function round(): Promise<void> {
    if (isDueLookWanted && world.monotonicMs() >= nextDueLookMs) await lookForDue();
    await fetchWaiting();
    await dispatch();
  }

  async function lookForDue(): Promise<void> {
    isDueLookWanted = false;
    const startMs = world.monotonicMs();
    const rows = await readDueEndpoints(store, {
      owner: keeper.owner,
      nowMs: world.nowMs(),
      ...duePlace,
      limit: DUE_PAGE,
    });
    for (const row of rows) {
      if (keeper.epochOf(row.shard) === undefined) continue;
      const endpoint = book.note(row);
      if (endpoint !== undefined && book.pausedUntilMs(endpoint, world.nowMs()) !== undefined) pause(endpoint);
    }
    // When there are more than a page, the next look goes on behind it, so that all come in turn.
    const last = rows.length === DUE_PAGE ? rows.at(-1) : undefined;
    isDueLookWanted ||= last !== undefined || duePlace.afterMs >= 0;
    duePlace =
      last === undefined ? { afterMs: -1, afterHookId: -1 } : { afterMs: last.next_at_ms, afterHookId: last.hook_id };
    // A look at many endpoints takes time from sending: at most a quarter of it.
    nextDueLookMs = world.monotonicMs() + 3 * (world.monotonicMs() - startMs);
  }

  async function fetchWaiting(): Promise<void> {
    const hungry = [...book.endpoints.values()].filter(isHungry).slice(0, MAX_FETCHES);
    if (hungry.length === 0) return;
    const requests = hungry.map((endpoint) => ({ hookId: endpoint.hookId, limit: fetchLimit(endpoint) }));
    const rows = Map.groupBy(await readWaiting(store, requests, world.nowMs()), (row) => row.hook_id);
    hungry.forEach((endpoint, index) => {
      const found = rows.get(endpoint.hookId) ?? [];
      const limit = requests[index]!.limit;
      const retries = found.filter((row) => row.lane === 1).length;
      endpoint.isDry = retries < limit && found.length - retries < limit;
      for (const row of found) if (!endpoint.isClosed && !endpoint.known.has(row.id)) admit(endpoint, row);
      // Its turn to be looked at comes again after the others'.
      if (endpoint.isDry && endpoint.known.size === 0) settler.nudge();
    });
  }

  function isHungry(endpoint: Endpoint): boolean {
    if (endpoint.isDry || endpoint.isClosed) return false;
    const { hookId } = endpoint;
    return scheduler.countWaiting(hookId, 'first') + scheduler.countWaiting(hookId, 'retry') < LOW_WATER;
  }

  // What is known is read again and passed over: it is still pending in its row.
  function fetchLimit(endpoint: Endpoint): number {
    return FETCH + endpoint.known.size;
  }

  function admit(endpoint: Endpoint, row: { id: number; lane: number; body_bytes: number }): void {
    const { hookId, origin, ownerId } = endpoint;
    endpoint.known.add(row.id);
    const lane = row.lane === 0 ? 'first' : 'retry';
    scheduler.add({ id: row.id, hookId, origin, ownerId, lane, bodyBytes: row.body_bytes });
  }

  async function dispatch(): Promise<void> {
    const jobs: Job[] = [];
    while (unsettled < CAPS.worker) {
      const job = scheduler.next();
      if (job === undefined) break;
      unsettled += 1;
      const endpoint = book.endpoints.get(job.hookId);
      if (endpoint !== undefined) book.begin(endpoint, world.nowMs());
      jobs.push(job);
    }
    if (jobs.length === 0) return;
    const contents = await readContents(store, jobs).catch((error: unknown) => {
      for (const job of jobs) putBack(job);
      throw error;
    });
    const contentById = new Map(contents.map((content) => [content.id, content]));
    for (const job of jobs) void deliver(job, contentById.get(job.id));
  }

  /** It was not sent: it is as if it had never been taken. */
  function putBack(job: Job): void {
    unsettled -= 1;
    scheduler.finish(job);
    const endpoint = book.endpoints.get(job.hookId);
    if (endpoint === undefined) return;
    endpoint.known.delete(job.id);
    endpoint.isDry = false;
    forgetWhenDone(endpoint);
  }

  async function deliver(job: Job, content: ContentRow | undefined): Promise<void> {
    const endpoint = book.endpoints.get(job.hookId);
    const epoch = endpoint === undefined ? undefined : keeper.epochOf(endpoint.shard);
    // Not pending any more, or the shard is another's now.
    if (endpoint === undefined || content === undefined || epoch === undefined) return putBack(job);
    const obstacle = findObstacle(content);
    if (obstacle !== undefined) {
      putBack(job);
      return close(endpoint, obstacle);
    }
    if (content.attempts === content.schedule_from)
      deliveryMetrics.observeDelay(Math.max(0, world.nowMs() - content.created_at_ms) / 1000);
    const sent = await sendAttempt(content, ATTEMPT_DEADLINE_MS);
    finish(job, endpoint, content, epoch, sent);
    pump();
  }

  function findObstacle(content: ContentRow) {
    if (content.url === null) return cancelEndpointStep(content.hook_id, world.nowMs());
    if (content.disabled_at_ms !== null) return holdEndpointStep(content.hook_id, world.nowMs());
    return undefined;
  }

  function close(endpoint: Endpoint, step: ReturnType<typeof holdEndpointStep>): void {
    settler.also(step);
    stopLoading(endpoint);
  }

  async function sendAttempt(content: ContentRow, deadlineMs: number) {
    const startedAtMs = world.nowMs();
    const prepared = prepare(content, startedAtMs);
    const { headers } = prepared;
    const request = { deliveryId: content.id, url: content.url ?? '', ...prepared, deadlineMs };
    const report = 'reason' in prepared ? reportUnsent(prepared.reason) : await sender.send(request);
    deliveryMetrics.countAttempt(report.outcome.kind, report.timingsMs.total / 1000);
    return { report, startedAtMs, headers };
  }

  function prepare(content: ContentRow, startedAtMs: number) {
    try {
      return prepareRequest(content.profile as ProfileName, {
        hookId: content.hook_id,
        encryptionType: content.encryption_type as EncryptionType,
        secrets: readSecrets(content.hook_id, content, startedAtMs),
        eventKind: content.event_kind,
        deliveryUuid: content.uuid,
        body: content.body,
        timestampMs: startedAtMs,
      });
    } catch (error) {
      log.error({ err: error, hookId: content.hook_id }, 'A delivery cannot be signed');
      return { headers: {}, body: content.body, reason: 'cannot be signed' };
    }
  }

  type Sent = Awaited<ReturnType<typeof sendAttempt>>;

  function finish(job: Job, endpoint: Endpoint, content: ContentRow, epoch: number, sent: Sent): void {
    const { outcome } = sent.report;
    const nowMs = world.nowMs();
    const change = book.record(endpoint, outcome, { nowMs, random: world.random() });
    scheduler.finish(job);
    scheduler.recheck(endpoint.origin, endpoint.hookId);
    settler.settle(
      describeSettlement(content, sent, { shard: endpoint.shard, epoch }),
      describeHookResult(content, sent),
    );
    if (change.hasOriginOpened) for (const one of listOfOrigin(endpoint.origin)) pause(one);
    if (change.hasOriginRecovered) wakeOrigin(endpoint.origin, nowMs);
    const reason = findDisableReason(endpoint.health, outcome, nowMs);
    if (reason !== undefined) disable(endpoint, reason);
    else if (book.pausedUntilMs(endpoint, nowMs) !== undefined) pause(endpoint);
    else if (change.hasHealthChanged)
      settler.change({ hookId: endpoint.hookId, ...endpoint.health, pausedUntilMs: null });
  }

  /** Its other endpoints need not wait for their own probes. */
  function wakeOrigin(origin: string, nowMs: number): void {
    settler.also(wakeOriginStep(origin, ENDPOINT_BREAKER.threshold, nowMs));
    isDueLookWanted = true;
  }

  function listOfOrigin(origin: string): Endpoint[] {
    return [...book.endpoints.values()].filter((endpoint) => endpoint.origin === origin);
  }

  function disable(endpoint: Endpoint, reason: string): void {
    log.info({ hookId: endpoint.hookId, reason }, 'A webhook was disabled');
    settler.disable({ hookId: endpoint.hookId, reason });
    close(endpoint, holdEndpointStep(endpoint.hookId, world.nowMs()));
  }

  /** One row says until when; in memory the endpoint is forgotten. */
  function pause(endpoint: Endpoint): void {
    const pausedUntilMs = book.pausedUntilMs(endpoint, world.nowMs());
    if (pausedUntilMs === undefined || endpoint.isClosed) return;
    settler.change({ hookId: endpoint.hookId, ...endpoint.health, pausedUntilMs });
    stopLoading(endpoint);
  }

  function stopLoading(endpoint: Endpoint): void {
    endpoint.isClosed = true;
    for (const job of scheduler.drop(endpoint.hookId)) endpoint.known.delete(job.id);
    forgetWhenDone(endpoint);
  }

  function forgetWhenDone(endpoint: Endpoint): void {
    if (endpoint.isClosed && endpoint.known.size === 0) book.forget(endpoint);
  }

  function describeSettlement(content: ContentRow, sent: Sent, place: { shard: number; epoch: number }): Settlement {
    const { report, startedAtMs, headers } = sent;
    const nowMs = world.nowMs();
    const attempt = content.attempts - content.schedule_from + 1;
    const next = nextStep(report.outcome, { attempt, nowMs, random: world.random() });
    return {
      deliveryId: content.id,
      hookId: content.hook_id,
      attempts: content.attempts,
      ...place,
      state: next.state,
      lane: 1,
      dueAtMs: next.dueAtMs ?? nowMs,
      attempt: recordAttempt({ id: world.id(), startedAtMs, requestHeaders: headers, report }),
    };
  }

  function describeHookResult(content: ContentRow, { report }: Sent) {
    return { hookId: content.hook_id, result: describeResult(report), status: report.status };
  }

  /** An endpoint may rest when all that was due is settled with this batch. */
  function chooseRests(settled: readonly Settlement[]): Rest[] {
    const settledIds = new Set(settled.map((one) => one.deliveryId));
    return [...book.endpoints.values()]
      .filter((one) => one.isDry && !one.isClosed && [...one.known].every((id) => settledIds.has(id)))
      .map(({ hookId, version }) => ({ hookId, version }));
  }

  function onStored(settled: readonly Settlement[], rests: readonly Rest[]): void {
    unsettled -= settled.filter((one) => one.epoch !== TEST_EPOCH).length;
    for (const { hookId, deliveryId } of settled) {
      const endpoint = book.endpoints.get(hookId);
      endpoint?.known.delete(deliveryId);
      if (endpoint !== undefined) forgetWhenDone(endpoint);
    }
    for (const { hookId } of rests) {
      const endpoint = book.endpoints.get(hookId);
      if (endpoint !== undefined && endpoint.known.size === 0) book.forget(endpoint);
    }
    pump();
  }

  async function doubt(deliveryIds: readonly number[], origin: string): Promise<void> {
    try {
      await settler.flush();
      const count = await doubtSuccess(store, deliveryIds, world.nowMs());
      log.warn(
        { origin, count },
        'A receiver answered more than it was asked; what that may have touched is sent again',
      );
      poke();
    } catch (error) {
      log.error({ err: error, origin }, 'Doubtful deliveries were not sent again');
    }
  }

  async function attemptNow(deliveryId: number, deadlineMs: number): Promise<SendReport | undefined> {
    if (isStopping) return undefined;
    const hookId = await claimForTest(store, deliveryId, deadlineMs + TEST_GRACE_MS);
    const [content] = hookId === undefined ? [] : await readContents(store, [{ hookId, id: deliveryId }]);
    if (content === undefined || content.url === null) return undefined;
    const leftMs = Math.max(1, Math.min(ATTEMPT_DEADLINE_MS, deadlineMs - world.nowMs()));
    const sent = await sendAttempt(content, leftMs);
    const settlement = describeSettlement(content, sent, { shard: 0, epoch: TEST_EPOCH });
    settler.settle(settlement, describeHookResult(content, sent));
    await settler.flush();
    return sent.report;
  }

  async function runLoop(): Promise<void> {
    while (!isStopping) {
      isAwake = false;
      try {
        await round();
      } catch (error) {
        log.warn({ reason: describeError(error) }, 'A round of deliveries failed');
        await world.sleep(POLL_MS);
      }
      if (!isAwake) await waitForWork();
      // Awake already: what input and output have brought gets its turn first.
      else await new Promise(setImmediate);
    }
  }

  function waitForWork(): Promise<void> {
    return new Promise((resolve) => {
      const waitMs = isDueLookWanted ? Math.max(0, Math.min(POLL_MS, nextDueLookMs - world.monotonicMs())) : POLL_MS;
      const timer = setTimeout(() => {
        isDueLookWanted = true;
        done();
      }, waitMs);
      const done = () => {
        clearTimeout(timer);
        wake = undefined;
        resolve();
      };
      wake = done;
    });
  }

  async function runHeart(): Promise<void> {
    while (!isStopping) {
      await keeper.beat(isShardBusy).catch((error: unknown) => {
        log.warn({ reason: describeError(error) }, 'The leases of deliveries were not renewed');
      });
      for (const endpoint of book.endpoints.values())
        if (keeper.epochOf(endpoint.shard) === undefined) stopLoading(endpoint);
      poke();
      await world.sleep(BEAT_MS, stopSignal.signal).catch(() => {});
    }
  }

  function isShardBusy(shard: number): boolean {
    return [...book.endpoints.values()].some((endpoint) => endpoint.shard === shard && endpoint.known.size > 0);
  }

  async function stop(): Promise<void> {
    isStopping = true;
    stopSignal.abort();
    pump();
    await Promise.all([loop, heart]);
    // What waits in memory only is still pending in its row; what is under way ends, and is stored.
    while (scheduler.underWay > 0) await world.sleep(10);
    const giveUp = setTimeout(() => settler.abandon(), STOP_GIVE_UP_MS);
    await settler.flush();
    clearTimeout(giveUp);
    await sender.close();
    if (loop !== undefined) await keeper.release().catch(() => {});
  }

  let stopping: Promise<void> | undefined;
  return {
    name: 'deliveries',
    start: () => {
      heart = runHeart();
      loop = runLoop();
    },
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
    poke,
    attemptNow,
  };
}

/** An attempt outside of any shard. */
const TEST_EPOCH = -1;
