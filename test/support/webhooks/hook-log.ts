/** A hook with a receiver, and deliveries of the past in its log. */
import assert from 'node:assert/strict';
import { type Store, statement } from '../../../src/database/store.ts';
import { createSecretCipher } from '../../../src/encryption/secret-cipher.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { createAddressGuard } from '../../../src/webhooks/addresses/address-guard.ts';
import { createDeliveryWorker } from '../../../src/webhooks/delivery/worker/delivery-worker.ts';
import { realWorld } from '../../../src/world.ts';
import { type Receiver, startReceiver } from '../network/receiver.ts';
import { forEachEngine } from '../store/engines.ts';
import { enqueueTestDelivery } from './deliveries-store.ts';
import { type Answer, type ManagementServer, startManagement } from './webhook-management.ts';

export const HOOKS = '/repos/grace/doors/hooks';
export const SECRET = 'a key of the test';
export const HOUR_MS = 3_600_000;
export const NOON = Date.UTC(2026, 5, 1, 12);
export const ACTOR = { username: 'grace', name: 'Grace' };

export const setStateSql = statement(
  'test-set-state',
  'UPDATE deliveries SET state = $2, event_kind = $3 WHERE id = $1',
);
export const setUrlSql = statement('test-set-url', 'UPDATE hooks SET url = $2 WHERE id = $1');
/** The status of its one attempt. */
export const setStatusSql = statement(
  'test-set-status',
  'UPDATE deliveries SET status = $2, attempts = 1 WHERE id = $1',
);
export const holdSql = statement('test-hold', 'UPDATE endpoint_queue SET held_since_ms = 1 WHERE hook_id = $1');

export interface Scene {
  readonly server: ManagementServer;
  readonly receiver: Receiver;
  readonly answerWith: (text: string) => void;
  readonly store: Store;
  readonly hookId: number;
  /** The address of the hook's log. */
  readonly log: string;
  readonly url: string;
}

/** A hook of a repository, a receiver behind it, and a worker that makes manual attempts, but was not started. */
export function withHook(title: string, run: (scene: Scene) => Promise<void>): void {
  forEachEngine(title, async (store) => {
    let words = 'ok';
    await using receiver = await startReceiver((_, response) => void response.end(words));
    const worker = createDeliveryWorker({
      store,
      world: realWorld,
      log: createLog('silent'),
      metrics: createMetrics(),
      cipher: createSecretCipher([Buffer.alloc(32, 7)], realWorld),
      guard: createAddressGuard({ allowCidrs: ['127.0.0.0/8'] }),
    });
    await using server = await startManagement(store, realWorld, worker);
    await server.call('POST', '/user/repos', { json: { name: 'doors' } });
    const { url } = receiver;
    const { body } = await server.call('POST', HOOKS, { json: { url, password: SECRET, encryption_type: 1 } });
    const answerWith = (text: string) => {
      words = text;
    };
    await run({ server, receiver, answerWith, store, hookId: body.id, log: `${HOOKS}/${body.id}/deliveries`, url });
    await worker.stop();
  });
}

export interface Past {
  readonly state?: string;
  readonly kind?: string;
  readonly hour?: number;
}

export async function addPast(
  { store, hookId, url }: Scene,
  { state = 'succeeded', kind = 'push', hour = 0 }: Past = {},
) {
  const id = await enqueueTestDelivery(store, { hookId, url, nowMs: NOON + hour * HOUR_MS });
  await store.write(setStateSql, [id, state, kind]);
  return id;
}

export function checkRefusal(answer: Answer, status: number, name: string): void {
  assert.deepEqual([answer.status, answer.body.error_code_name], [status, name]);
  assert.match(answer.body.trace_id, /^[0-9a-f]{32}$/);
}

export const idsOf = (answer: Answer): number[] => answer.body.map((delivery: { id: number }) => delivery.id);
