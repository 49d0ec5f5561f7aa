/**
 * Runs one delivery engine in a separate process: ours, pg-boss or BullMQ. The peers' jobs carry the data of our rows, and go
 * through the same profile and the same undici sender, so that only the queue differs.
 */
import { Queue, Worker } from 'bullmq';
import PgBoss from 'pg-boss';
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/startup/open-store.ts';
import { createSecretCipher } from '../../src/encryption/secret-cipher.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createAddressGuard } from '../../src/webhooks/addresses/address-guard.ts';
import { createSender } from '../../src/webhooks/delivery/send/send.ts';
import { createDeliveryWorker } from '../../src/webhooks/delivery/worker/delivery-worker.ts';
import { hookAssociatedData } from '../../src/webhooks/hooks/hook.ts';
import { findHookById, type StoredHook } from '../../src/webhooks/hooks/hook-store.ts';
import { prepareRequest } from '../../src/webhooks/profiles/profiles.ts';
import { realWorld } from '../../src/world.ts';
import {
  commitTestDelivery,
  enqueueTestDelivery,
  insertTestHook,
  type TestDelivery,
} from '../../test/support/webhooks/deliveries-store.ts';

export interface EngineOptions {
  readonly kind: 'trivet' | 'pg-boss' | 'bullmq';
  readonly dataDir: string;
  readonly databaseUrl?: string;
  readonly redisPort?: number;
}

export interface BenchHook {
  readonly id: number;
  readonly url: string;
  readonly ownerId: string;
}

export interface BenchJob {
  readonly hook: BenchHook;
  readonly body: string;
}

export type EngineCommand =
  | { readonly kind: 'open'; readonly options: EngineOptions; readonly hooks: readonly BenchHook[] }
  | { readonly kind: 'enqueue'; readonly jobs: readonly BenchJob[] }
  | { readonly kind: 'start' }
  | { readonly kind: 'steady'; readonly perSecond: number; readonly seconds: number; readonly body: string }
  | { readonly kind: 'stop' };

const CONCURRENCY = 64;
const SECRET = 'secret of the bench';
const guard = createAddressGuard({ allowCidrs: ['127.0.0.0/8'] });

interface Engine {
  enqueue(jobs: readonly BenchJob[]): Promise<void>;
  start(): void;
  stop(): Promise<void>;
  steady?(perSecond: number, seconds: number, body: string): Promise<[uuid: number, atMs: number][]>;
}

let engine: Engine | undefined;
let hooks: readonly BenchHook[] = [];

async function openTrivet(options: EngineOptions): Promise<Engine> {
  const log = createLog('warn');
  const store = await openStore({
    dataDir: options.dataDir,
    databaseUrl: options.databaseUrl,
    poolSize: 10,
    migrations,
    world: realWorld,
    log,
  });
  const cipher = createSecretCipher([new Uint8Array(32).fill(1)], realWorld);
  for (const hook of hooks)
    await insertTestHook(store, { ...hook, secret: cipher.encrypt(SECRET, hookAssociatedData(hook.id)) });
  const storedHooks = new Map<number, StoredHook>();
  for (const { id } of hooks) storedHooks.set(id, (await findHookById(store, id))!);
  const worker = createDeliveryWorker({ store, world: realWorld, log, metrics: createMetrics(), cipher, guard });
  return {
    enqueue: async (jobs) => {
      await mapConcurrently(jobs, 200, ({ hook, body }) => enqueueTestDelivery(store, describeDelivery(hook, body)));
    },
    start: () => worker.start(),
    stop: async () => {
      await worker.stop();
      await store[Symbol.asyncDispose]();
    },
    steady: async (perSecond, seconds, body) => {
      const committed: [number, number][] = [];
      const startMs = performance.now();
      const total = perSecond * seconds;
      const waiting: Promise<void>[] = [];
      for (let count = 0; count < total; ) {
        const dueCount = Math.min(total, Math.floor(((performance.now() - startMs) / 1000) * perSecond));
        for (; count < dueCount; count += 1) {
          const hook = hooks[count % hooks.length]!;
          waiting.push(
            commitTestDelivery(store, storedHooks.get(hook.id)!, describeDelivery(hook, body)).then((delivery) => {
              committed.push([delivery.id, performance.timeOrigin + performance.now()]);
              worker.takeCommitted([delivery.committed], delivery.versions);
            }),
          );
        }
        await realWorld.sleep(2);
      }
      await Promise.all(waiting);
      return committed;
    },
  };
}

function describeDelivery(hook: BenchHook, body: string): TestDelivery {
  return { hookId: hook.id, url: hook.url, ownerId: hook.ownerId, body: Buffer.from(body) };
}

const sender = createSender({ guard, nowMs: Date.now, monotonicMs: () => performance.now() });
const key = Buffer.from(SECRET);

interface PeerJob {
  readonly hookId: number;
  readonly url: string;
  readonly uuid: string;
  readonly body: string;
}

/** The work of our worker between taking a delivery from its queue and storing the result. */
async function deliverPeerJob(job: PeerJob): Promise<object> {
  const { headers, body } = prepareRequest('gitcode', {
    hookId: job.hookId,
    encryptionType: 1,
    secrets: { current: key, previous: [] },
    eventKind: 'push',
    deliveryUuid: job.uuid,
    body: Buffer.from(job.body),
    timestampMs: Date.now(),
  });
  const report = await sender.send({ deliveryId: job.hookId, url: job.url, headers, body });
  if (report.status !== 200) throw new Error(report.reason ?? 'refused');
  const { status, timingsMs, remoteAddress, responseHeaders } = report;
  return { status, timingsMs, remoteAddress, responseHeaders, body: Buffer.from(report.responseBody).toString() };
}

function toPeerJob({ hook, body }: BenchJob): PeerJob {
  return { hookId: hook.id, url: hook.url, uuid: realWorld.uuid(), body };
}

/** Uses loops that fetch, send and complete without a pause, not `work()`, which polls at most twice a second. */
async function openPgBoss(options: EngineOptions): Promise<Engine> {
  const boss = new PgBoss({ connectionString: options.databaseUrl ?? '', max: 10, supervise: false, schedule: false });
  await boss.start();
  await boss.createQueue('deliveries');
  let isStopping = false;
  const loop = async (): Promise<void> => {
    while (!isStopping) {
      const jobs = await boss.fetch<PeerJob>('deliveries', { batchSize: CONCURRENCY / 4 });
      if (jobs.length === 0) {
        await realWorld.sleep(20);
        continue;
      }
      await Promise.all(jobs.map(async (job) => boss.complete('deliveries', job.id, await deliverPeerJob(job.data))));
    }
  };
  const loops: Promise<void>[] = [];
  return {
    enqueue: async (jobs) => {
      for (let at = 0; at < jobs.length; at += 500)
        await boss.insert(jobs.slice(at, at + 500).map((job) => ({ name: 'deliveries', data: toPeerJob(job) })));
    },
    start: () => {
      for (let count = 0; count < 4; count += 1) loops.push(loop());
    },
    stop: async () => {
      isStopping = true;
      await Promise.all(loops);
      await boss.stop({ graceful: false });
    },
  };
}

async function openBullmq(options: EngineOptions): Promise<Engine> {
  const connection = { host: '127.0.0.1', port: options.redisPort ?? 6379, maxRetriesPerRequest: null };
  const queue = new Queue<PeerJob>('deliveries', { connection });
  let worker: Worker<PeerJob> | undefined;
  return {
    enqueue: async (jobs) => {
      for (let at = 0; at < jobs.length; at += 500)
        await queue.addBulk(jobs.slice(at, at + 500).map((job) => ({ name: 'deliver', data: toPeerJob(job) })));
    },
    start: () => {
      worker = new Worker<PeerJob>('deliveries', (job) => deliverPeerJob(job.data), {
        connection,
        concurrency: CONCURRENCY,
      });
    },
    stop: async () => {
      await worker?.close();
      await queue.close();
    },
  };
}

const OPEN = { trivet: openTrivet, 'pg-boss': openPgBoss, bullmq: openBullmq };

async function mapConcurrently<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  let at = 0;
  const run = async (): Promise<void> => {
    while (at < items.length) {
      const item = items[at]!;
      at += 1;
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: limit }, run));
}

async function handle(command: EngineCommand): Promise<unknown> {
  switch (command.kind) {
    case 'open':
      hooks = command.hooks;
      engine = await OPEN[command.options.kind](command.options);
      return undefined;
    case 'enqueue':
      return await engine?.enqueue(command.jobs);
    case 'start':
      return engine?.start();
    case 'steady':
      return await engine?.steady?.(command.perSecond, command.seconds, command.body);
    case 'stop':
      await engine?.stop();
      await sender.close();
      return undefined;
  }
}

process.on('message', (command: EngineCommand) => {
  handle(command).then(
    (result) => process.send?.({ kind: 'done', result }),
    (error: unknown) => process.send?.({ kind: 'failed', message: (error as Error).stack }),
  );
});

process.on('disconnect', () => process.exit(0));
