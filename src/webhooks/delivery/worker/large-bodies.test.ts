/** Large bodies take a bounded part of a worker's memory; with real sockets, on both engines. */
import assert from 'node:assert/strict';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { startTestWorker } from '../../../../test/support/webhooks/delivery-worker.ts';
import type { Store } from '../../../database/store.ts';
import { realWorld } from '../../../world.ts';
import { SMALL_READ } from '../queue/delivery-queue-store.ts';
import { enqueueStatements } from '../queue/delivery-store.ts';
import { CAPS, MAX_SMALL_BODY_BYTES } from '../schedule/concurrency-limits.ts';

const OWNERS = 8;
const HOOKS_OF_OWNER = 2;
const OF_HOOK = 2;
const BODY_BYTES = 4_194_304;
const COUNT = OWNERS * HOOKS_OF_OWNER * OF_HOOK;
const MAX_AT_ONCE = Math.ceil(CAPS.largeBodyBytes / BODY_BYTES);

async function enqueueLarge(store: Store, origins: readonly string[]): Promise<number[]> {
  const ids: number[] = [];
  for (const [index, origin] of origins.entries()) {
    const hook = { url: `${origin}/${index}`, ownerId: `owner-${index % OWNERS}` };
    await insertTestHook(store, { id: index + 1, ...hook });
    for (let of = 0; of < OF_HOOK; of += 1)
      ids.push(await enqueueTestDelivery(store, { hookId: index + 1, ...hook, body: Buffer.alloc(BODY_BYTES, 'a') }));
  }
  return ids;
}

forEachEngine(
  'large bodies under way have a budget, and small deliveries of another owner do not wait for them',
  async (store) => {
    const answers: (() => void)[] = [];
    const isFull = Promise.withResolvers<void>();
    const hold = (end: () => void) => {
      answers.push(end);
      if (answers.length === MAX_AT_ONCE) isFull.resolve();
    };
    await using parts = new AsyncDisposableStack();
    const origins: string[] = [];
    for (let index = 0; index < OWNERS * HOOKS_OF_OWNER; index += 1) {
      const receiver = parts.use(await startReceiver((_, response) => hold(() => response.end('ok'))));
      origins.push(new URL(receiver.url).origin);
    }
    await using quick = await startReceiver();
    const ids = await enqueueLarge(store, origins);
    const small = { hookId: 99, url: quick.url, ownerId: 'small' };
    await insertTestHook(store, { id: small.hookId, ...small });
    await using worker = startTestWorker(store);
    worker.wake();
    let answered = 0;
    let most = 0;
    const answer = () => {
      answered += answers.length;
      for (const end of answers.splice(0)) end();
    };
    await isFull.promise;
    while (answered < COUNT) {
      const id = await enqueueTestDelivery(store, small);
      worker.wake([small.hookId]);
      // No receiver of a large body has answered yet.
      const row = await waitForDelivery(store, id);
      assert.deepEqual([row.state, row.attempts], ['succeeded', 1]);
      most = Math.max(most, answers.length);
      answer();
    }
    assert.equal(most, MAX_AT_ONCE);
    for (const id of ids) assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
  },
);

const HOOKS_AT_ONCE = 70;
const MAX_READ_BYTES = 8_388_608;

forEachEngine(
  'the small bodies of many webhooks that are due at once are read a few webhooks at a time',
  async (store) => {
    await using receiver = await startReceiver();
    const [body, nowMs] = [Buffer.alloc(MAX_SMALL_BODY_BYTES, 'a'), realWorld.nowMs()];
    const ids = await store.makeIds(HOOKS_AT_ONCE * SMALL_READ);
    for (let hook = 0; hook < HOOKS_AT_ONCE; hook += 1) {
      const hookId = hook + 1;
      await insertTestHook(store, { id: hookId, url: receiver.url });
      const origin = new URL(receiver.url).origin;
      const base = { hookId, eventId: 1, body, eventKind: 'push' as const, origin, ownerId: 'owner', nowMs };
      const ofHook = ids.slice(hook * SMALL_READ, hookId * SMALL_READ);
      await store.writeAll(enqueueStatements(ofHook.map((id) => ({ ...base, id, uuid: realWorld.uuid() }))));
    }
    let mostBytes = 0;
    const readAll: Store['readAll'] = async (statements) => {
      const answers = await store.readAll(statements);
      const bytes = answers.flat().reduce((sum, row) => sum + ((row.body as Uint8Array | null)?.byteLength ?? 0), 0);
      mostBytes = Math.max(mostBytes, bytes);
      return answers;
    };
    await using worker = startTestWorker({ ...store, readAll });
    worker.wake();
    for (const id of ids) assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
    assert.ok(mostBytes > 0 && mostBytes <= MAX_READ_BYTES, `${mostBytes} bytes in one read`);
  },
);
