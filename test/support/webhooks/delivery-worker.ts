/** Creates a worker that delivers from a store to receivers on this machine, and reads the state of its hooks and hook queues. */
import { type Statement, type Store, statement } from '../../../src/database/store.ts';
import { createSecretCipher } from '../../../src/encryption/secret-cipher.ts';
import { createLog, type Log } from '../../../src/telemetry/log.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { createAddressGuard } from '../../../src/webhooks/addresses/address-guard.ts';
import {
  createDeliveryWorker,
  type DeliveryWorker,
  type DeliveryWorkerDependencies,
} from '../../../src/webhooks/delivery/worker/delivery-worker.ts';
import { realWorld, type World } from '../../../src/world.ts';
import { waitUntil } from '../basics/wait-until.ts';

export const testCipher = createSecretCipher([new Uint8Array(32).fill(7)], realWorld);

export type TestWorker = DeliveryWorker & AsyncDisposable;

/** A worker that was not started: it makes only the requested attempts. */
export function createTestWorker(
  store: Store,
  allowCidrs: readonly string[] = ['127.0.0.0/8'],
  world: World = realWorld,
  log: Log = createLog('warn'),
  room?: DeliveryWorkerDependencies['room'],
): TestWorker {
  const worker = createDeliveryWorker({
    store,
    world,
    log,
    metrics: createMetrics(),
    cipher: testCipher,
    guard: createAddressGuard({ allowCidrs }),
    room,
  });
  return { ...worker, [Symbol.asyncDispose]: () => worker.stop() };
}

export function startTestWorker(...given: Parameters<typeof createTestWorker>): TestWorker {
  const worker = createTestWorker(...given);
  worker.start();
  return worker;
}

export interface HookRow {
  readonly result: string | null;
  readonly result_code: number;
  readonly disabled_at_ms: number | null;
  readonly disabled_reason: string | null;
}
const hookRowSql = statement<HookRow>(
  'test-hook-row',
  'SELECT result, result_code, disabled_at_ms, disabled_reason FROM hooks WHERE id = $1',
);

export interface HookQueueRow {
  readonly origin: string;
  readonly parked: number;
  readonly next_at_ms: number;
  readonly held_since_ms: number | null;
}
const hookQueueRowSql = statement<HookQueueRow>(
  'test-endpoint-row',
  'SELECT origin, parked, next_at_ms, held_since_ms FROM endpoint_queue WHERE hook_id = $1',
);

type IsThere<Row> = (row: Row) => boolean;

export function waitForHook(store: Store, hookId: number, isThere: IsThere<HookRow> = () => true): Promise<HookRow> {
  return waitForRow(store, hookRowSql, hookId, isThere);
}

export function waitForHookQueue(
  store: Store,
  hookId: number,
  isThere: IsThere<HookQueueRow> = () => true,
): Promise<HookQueueRow> {
  return waitForRow(store, hookQueueRowSql, hookId, isThere);
}

async function waitForRow<Row extends object>(
  store: Store,
  asked: Statement<Row>,
  id: number,
  isThere: IsThere<Row>,
): Promise<Row> {
  return await waitUntil(async () => {
    const [row] = await store.read(asked, [id]);
    return row !== undefined && isThere(row) && row;
  }, 10);
}
