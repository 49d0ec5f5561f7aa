/**
 * The worker that sends deliveries: rounds that follow each other as long as there is work, the heartbeat that keeps its
 * shards, and a stop that loses nothing. A round begins when something was enqueued, when an attempt has ended or its
 * result is stored, and a few times a second, which is when retries and the enqueues of other processes are seen.
 */

import type { Store } from '../../../database/store.ts';
import { describeError } from '../../../errors.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { Metrics } from '../../../telemetry/metrics.ts';
import type { Vault } from '../../../vault/vault.ts';
import type { Worker } from '../../../workers/worker.ts';
import type { World } from '../../../world.ts';
import type { AddressGuard } from '../../addresses/address-guard.ts';
import { countPauses } from '../../hooks/hook-status-store.ts';
import { createSecretCache } from '../../hooks/secret-cache.ts';
import { doubtSuccess } from '../queue/delivery-restart-store.ts';
import { countPendingDeliveries } from '../queue/delivery-store.ts';
import { createScheduler, type Job } from '../schedule/scheduler.ts';
import { CAPS } from '../schedule/slots.ts';
import { createSender } from '../send/send.ts';
import { createAttempts } from './attempt.ts';
import { createDeliveryMetrics } from './delivery-metrics.ts';
import { createDeliveryRound } from './delivery-round.ts';
import { createDueLook } from './due-look.ts';
import { createEndpointBook } from './endpoint-book.ts';
import { createEndpointControl } from './endpoint-control.ts';
import { createSettler } from './settler.ts';
import { BEAT_MS, createShardKeeper } from './shard-keeper.ts';
import { createUrgentAttempts, type UrgentAttempts } from './urgent-attempts.ts';

const POLL_MS = 200;
/** Under load, so that a round has several to read and to send. */
const ROUND_EVERY_MS = 2;
const STOP_GIVE_UP_MS = 3000;

export interface DeliveryWorkerParts {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly vault: Vault;
  readonly guard: AddressGuard;
  /** Authorities (PEM) for the certificates of receivers; those of Node unless given. */
  readonly ca?: readonly string[] | undefined;
}

export interface DeliveryWorker extends Worker {
  /** Something was enqueued by this process, to these hooks or to any. */
  poke(hookIds?: readonly number[]): void;
  /** What a person wants now; also without a start. */
  readonly urgent: Pick<UrgentAttempts, 'test' | 'redeliver'>;
}

export function createDeliveryWorker(parts: DeliveryWorkerParts): DeliveryWorker {
  const { store, world, log } = parts;
  const book = createEndpointBook();
  const keeper = createShardKeeper(store, world);
  const scheduler = createScheduler<Job>({
    caps: CAPS,
    limitsOfOrigin: (origin) => book.limitsOfOrigin(origin, world.nowMs()),
    allowedOfHook: (hookId) => book.allowedOfHook(hookId, world.nowMs()),
  });
  const sender = createSender({
    guard: parts.guard,
    nowMs: () => world.nowMs(),
    monotonicMs: () => world.monotonicMs(),
    onDoubt: (ids, origin) => void doubt(ids, origin),
    ca: parts.ca,
  });
  const metrics = createDeliveryMetrics(parts.metrics, {
    countPending: () => countPendingDeliveries(store),
    countUnderWay: () => round.unsettled,
    listOriginBreakers: () => book.listOriginBreakers(),
    countPaused: () => countPauses(store, world.nowMs()),
  });
  const makeAttempt = createAttempts({ world, log, metrics, sender, readSecrets: createSecretCache(parts.vault) });
  const settler = createSettler({
    store,
    world,
    log,
    owner: keeper.owner,
    chooseRests: (settled) => round.chooseRests(settled),
    onStored: (settled, rests) => round.onStored(settled, rests),
  });
  const control = createEndpointControl({ world, log, book, scheduler, settler, lookSoon: () => dueLook.want() });
  const dueLook = createDueLook({ store, world, keeper, book, control });
  const round = createDeliveryRound({
    store,
    world,
    keeper,
    book,
    scheduler,
    settler,
    control,
    dueLook,
    makeAttempt,
    onEnd: () => wake(),
  });
  const urgent = createUrgentAttempts({ store, world, log, settler, control, makeAttempt, poke });

  let isStopping = false;
  let isAwake = false;
  let lastRoundMs = Number.NEGATIVE_INFINITY;
  let endWait: (() => void) | undefined;
  let loop: Promise<void> | undefined;
  let heart: Promise<void> | undefined;
  const stopSignal = new AbortController();

  function wake(): void {
    isAwake = true;
    endWait?.();
  }

  function poke(hookIds?: readonly number[]): void {
    const areInHand = hookIds?.map((hookId) => book.refresh(hookId)) ?? [false];
    if (!areInHand.every(Boolean)) dueLook.want();
    wake();
  }

  async function doubt(deliveryIds: readonly number[], origin: string): Promise<void> {
    try {
      await settler.flush();
      const count = await doubtSuccess(store, deliveryIds, world.nowMs());
      const message = 'A receiver answered more than it was asked; what that may have touched is sent again';
      log.warn({ origin, count }, message);
      poke();
    } catch (error) {
      log.error({ err: error, origin }, 'Doubtful deliveries were not sent again');
    }
  }

  async function pace(): Promise<void> {
    const waitMs = lastRoundMs + ROUND_EVERY_MS - world.monotonicMs();
    if (waitMs > 0) await world.sleep(waitMs);
    // What input and output have brought gets its turn in any case.
    else await new Promise(setImmediate);
    lastRoundMs = world.monotonicMs();
  }

  async function runLoop(): Promise<void> {
    while (!isStopping) {
      await pace();
      isAwake = false;
      try {
        await round.run();
      } catch (error) {
        log.warn({ reason: describeError(error) }, 'A round of deliveries failed');
        await world.sleep(POLL_MS);
      }
      if (!isAwake) await waitForWork();
    }
  }

  function waitForWork(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        endWait = undefined;
        resolve();
      };
      const timer = setTimeout(
        () => {
          dueLook.want();
          done();
        },
        Math.min(POLL_MS, dueLook.waitMs() ?? POLL_MS),
      );
      endWait = done;
    });
  }

  async function runHeart(): Promise<void> {
    while (!isStopping) {
      await keeper.beat(isShardBusy).catch((error: unknown) => {
        log.warn({ reason: describeError(error) }, 'The leases of deliveries were not renewed');
      });
      for (const endpoint of book.list((one) => keeper.epochOf(one.shard) === undefined)) control.stopLoading(endpoint);
      poke();
      await world.sleep(BEAT_MS, stopSignal.signal).catch(() => {});
    }
  }

  function isShardBusy(shard: number): boolean {
    return book.list((endpoint) => endpoint.shard === shard && endpoint.known.size > 0, 1).length > 0;
  }

  async function stop(): Promise<void> {
    isStopping = true;
    stopSignal.abort();
    wake();
    await Promise.all([loop, heart, urgent.stop()]);
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
    urgent,
  };
}
