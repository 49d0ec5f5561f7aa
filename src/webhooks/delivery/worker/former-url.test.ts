/** During an attempt its hook gets another URL of the same origin, or another process releases it or finds that it recovered. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type Receiver, startReceiver } from '../../../../test/support/network/receiver.ts';
import { type EngineContext, forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  readAttempts,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { createTestWorker, startTestWorker, waitForHook } from '../../../../test/support/webhooks/delivery-worker.ts';
import { type Store, statement } from '../../../database/store.ts';
import { realWorld } from '../../../world.ts';
import { changeHook, type HookChange } from '../../hooks/hook-change-store.ts';
import { releaseHookQueueStatement } from '../queue/delivery-store.ts';

interface Health {
  readonly fails: number;
  readonly failing_since_ms: number | null;
  readonly parked: number;
  readonly held_since_ms: number | null;
}
const healthSql = statement<Health>(
  'test-health-of-hook',
  'SELECT fails, failing_since_ms, parked, held_since_ms FROM endpoint_queue WHERE hook_id = 1',
);
const UNHARMED: Health = { fails: 0, failing_since_ms: null, parked: 0, held_since_ms: null };
const failSql = statement('test-fail-for-days', 'UPDATE endpoint_queue SET fails = 40, failing_since_ms = 1');

const ONLY_URL: Omit<HookChange, 'url' | 'nowMs'> = {
  encryptionType: undefined,
  profile: undefined,
  events: {},
  secret: undefined,
  expected: undefined,
  switch: undefined,
};

/** Changes the URL as the API does. */
async function changeUrl(store: Store, url: string): Promise<void> {
  const nowMs = realWorld.nowMs();
  const ofHookQueue = [releaseHookQueueStatement(1, nowMs)];
  const statements = { ofHookQueue, records: [], switchRecords: [] };
  await changeHook(store, { id: 1, change: { ...ONLY_URL, url, nowMs } }, statements);
}

/** `/old` answers when the test lets it; any other path accepts at once. */
async function startMovingReceiver(): Promise<{ receiver: Receiver; answer: (status: number) => void }> {
  const waiting: ServerResponse[] = [];
  const receiver = await startReceiver(({ path }, response) => {
    if (path === '/old') waiting.push(response);
    else response.end('ok');
  });
  const answer = (status: number): void => {
    for (const response of waiting.splice(0)) response.writeHead(status).end('of before');
  };
  return { receiver, answer };
}

const KINDS = ['scheduled', 'manual'] as const;

function testFormerUrl(status: number, kind: (typeof KINDS)[number]) {
  return async (store: Store, { openAnother }: EngineContext): Promise<void> => {
    const { receiver, answer } = await startMovingReceiver();
    await using _ = receiver;
    const origin = new URL(receiver.url).origin;
    const url = `${origin}/old`;
    await insertTestHook(store, { id: 1, url });
    const id = await enqueueTestDelivery(store, { hookId: 1, url });
    await store.write(failSql);
    await using worker = createTestWorker(store);
    if (kind === 'scheduled') worker.start();
    else await worker.manual.redeliver(1, id);
    await receiver.waitFor(1);
    await changeUrl(await openAnother(), `${origin}/new`);
    answer(status);
    await waitForDelivery(store, id, (row) => row.attempts === 1);
    assert.deepEqual(await store.read(healthSql), [UNHARMED]);
    assert.equal((await waitForHook(store, 1)).disabled_at_ms, null);
    if (kind === 'manual') worker.start();
    const next = await enqueueTestDelivery(store, { hookId: 1, url: `${origin}/new` });
    worker.wake([1]);
    assert.equal((await waitForDelivery(store, next)).state, 'succeeded');
    assert.equal(receiver.received.at(-1)?.path, '/new');
  };
}

for (const kind of KINDS)
  for (const status of [410, 500])
    forEachEngine(
      `a ${status} of the former URL, by a ${kind} attempt, neither counts nor disables the hook`,
      testFormerUrl(status, kind),
    );

for (const kind of KINDS)
  forEachEngine(
    `the answer of the former URL to a ${kind} attempt is not shown as the last response`,
    async (store) => {
      const { receiver, answer } = await startMovingReceiver();
      await using _ = receiver;
      const origin = new URL(receiver.url).origin;
      const url = `${origin}/old`;
      await insertTestHook(store, { id: 1, url });
      const id = await enqueueTestDelivery(store, { hookId: 1, url });
      await using worker = createTestWorker(store);
      if (kind === 'scheduled') worker.start();
      else await worker.manual.redeliver(1, id);
      await receiver.waitFor(1);
      await changeUrl(store, `${origin}/new`);
      answer(500);
      await waitForDelivery(store, id, (row) => row.attempts === 1);
      await worker.stop();
      const { result, result_code } = await waitForHook(store, 1);
      assert.deepEqual([result, result_code], [null, 0]);
    },
  );

forEachEngine('a worker counts from 0 the failures of a hook that another process released', async (store) => {
  await using receiver = await startReceiver((_, response) => void response.writeHead(503).end());
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await using worker = startTestWorker(store);
  const fail = async (): Promise<void> => {
    const id = await enqueueTestDelivery(store, { hookId: 1, url });
    worker.wake([1]);
    await waitForDelivery(store, id, (row) => row.attempts === 1);
  };
  for (let count = 0; count < 4; count += 1) await fail();
  assert.equal((await store.read(healthSql))[0]?.fails, 4);
  await store.writeAll([releaseHookQueueStatement(1, realWorld.nowMs())]);
  await fail();
  const [health] = await store.read(healthSql);
  assert.deepEqual([health?.fails, health?.parked], [1, 0], 'the fifth failure in a row would pause it');
});

forEachEngine('a hook queue that was released counts a 410 of the next attempt at once', async (store) => {
  let status = 503;
  await using receiver = await startReceiver((_, response) => void response.writeHead(status).end());
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await using worker = startTestWorker(store);
  const send = async (): Promise<number> => {
    const id = await enqueueTestDelivery(store, { hookId: 1, url });
    worker.wake([1]);
    await waitForDelivery(store, id, (row) => row.attempts === 1);
    return id;
  };
  await send();
  status = 410;
  await store.writeAll([releaseHookQueueStatement(1, realWorld.nowMs())]);
  const id = await send();
  assert.equal((await readAttempts(store, id)).at(-1)?.outcome, 'gone');
  await waitForHook(store, 1, (hook) => hook.disabled_at_ms !== null);
});
