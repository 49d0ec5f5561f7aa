import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { findFreePort } from '../../../../test/support/basics/free-port.ts';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { onRequest, startRawReceiver } from '../../../../test/support/network/raw-receiver.ts';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  insertTestHook,
  readAttempts,
  readDelivery,
  waitForDelivery,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import {
  createTestWorker,
  startTestWorker,
  testCipher,
  waitForHook,
  waitForHookQueue,
} from '../../../../test/support/webhooks/delivery-worker.ts';
import { FORBIDDEN_TARGETS } from '../../../../test/support/webhooks/forbidden-targets.ts';
import { type Store, statement } from '../../../database/store.ts';
import { Failure } from '../../../errors.ts';
import { createLog } from '../../../telemetry/log.ts';
import { realWorld } from '../../../world.ts';
import { hookAssociatedData } from '../../hooks/hook.ts';
import { reopenDoubtful } from '../queue/delivery-restart-store.ts';

forEachEngine('a delivery is sent with its stored bytes, signed, and logged', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  const secret = testCipher.encrypt('key', hookAssociatedData(1));
  await insertTestHook(store, { id: 1, url, secret });
  await using worker = startTestWorker(store);
  const body = Buffer.from('{"text":"grüß"}');
  const id = await enqueueTestDelivery(store, { hookId: 1, url, body });
  worker.wake();
  const row = await waitForDelivery(store, id);
  assert.deepEqual([row.state, row.attempts, row.status], ['succeeded', 1, 200]);
  const [request] = receiver.received;
  assert.deepEqual(request?.body, body);
  assert.equal(request?.headers['x-gitcode-event'], 'Push Hook');
  assert.match(String(request?.headers['x-gitcode-signature-256']), /^sha256=[0-9a-f]{64}$/);
  const [attempt] = await readAttempts(store, id);
  assert.equal(attempt?.remote_address, '127.0.0.1');
  const detail = JSON.parse(attempt?.detail ?? '{}');
  assert.equal(detail.request_headers['X-GitCode-Signature-256'], '[redacted]');
  assert.equal(typeof detail.timings_ms.firstByte, 'number');
  assert.deepEqual(await waitForHook(store, 1, (hook) => hook.result !== null), {
    result: 'ok',
    result_code: 200,
    disabled_at_ms: null,
    disabled_reason: null,
  });
});

forEachEngine('a thousand deliveries to many hooks arrive once each', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  for (let hookId = 1; hookId <= 20; hookId += 1) await insertTestHook(store, { id: hookId, url });
  const ids: number[] = [];
  await Promise.all(
    Array.from({ length: 1000 }, async (_, index) => {
      const hookId = (index % 20) + 1;
      ids.push(await enqueueTestDelivery(store, { hookId, url, ownerId: `owner-${hookId % 3}` }));
    }),
  );
  await using worker = startTestWorker(store);
  worker.wake();
  for (const id of ids) assert.equal((await waitForDelivery(store, id)).attempts, 1);
  assert.equal(receiver.received.length, 1000);
  assert.equal(new Set(receiver.received.map((request) => request.headers['x-gitcode-delivery'])).size, 1000);
});

forEachEngine('a refused delivery is tried again with the same bytes and the same id', async (store) => {
  await using receiver = await startReceiver((_, response, index) => {
    response.statusCode = index === 0 ? 500 : 204;
    response.end(index === 0 ? 'broken' : undefined);
  });
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await using worker = startTestWorker(store);
  const id = await enqueueTestDelivery(store, { hookId: 1, url });
  worker.wake();
  const refused = await waitForDelivery(store, id, (row) => row.attempts === 1);
  assert.equal(refused.state, 'pending');
  assert.deepEqual(await waitForHook(store, 1, (hook) => hook.result !== null), {
    result: 'broken',
    result_code: 500,
    disabled_at_ms: null,
    disabled_reason: null,
  });
  await store.write(statement('test-due', 'UPDATE deliveries SET due_at_ms = 0 WHERE id = $1'), [id]);
  await store.write(statement('test-due-endpoint', 'UPDATE endpoint_queue SET next_at_ms = 0 WHERE hook_id = $1'), [1]);
  assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
  const [first, second] = receiver.received;
  assert.deepEqual(second?.body, first?.body);
  assert.equal(second?.headers['x-gitcode-delivery'], first?.headers['x-gitcode-delivery']);
  assert.equal(second?.headers['webhook-id'], first?.headers['webhook-id']);
});

forEachEngine('410 Gone ends the delivery, disables the hook and holds the rest', async (store) => {
  await using receiver = await startReceiver((_, response) => {
    response.statusCode = 410;
    response.end();
  });
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  await using worker = startTestWorker(store);
  const id = await enqueueTestDelivery(store, { hookId: 1, url });
  worker.wake();
  assert.equal((await waitForDelivery(store, id)).state, 'dead');
  const hook = await waitForHook(store, 1, (row) => row.disabled_at_ms !== null);
  assert.equal(hook.disabled_reason, 'The receiver answered 410 Gone');
  assert.notEqual((await waitForHookQueue(store, 1)).held_since_ms, null);
  const later = await enqueueTestDelivery(store, { hookId: 1, url });
  await insertTestHook(store, { id: 2, url });
  const other = await enqueueTestDelivery(store, { hookId: 2, url });
  worker.wake();
  await waitForDelivery(store, other);
  assert.equal((await readDelivery(store, later)).attempts, 0);
});

forEachEngine('a destination that is down gets few attempts, and most of its deliveries stay unsent', async (store) => {
  const url = `http://127.0.0.1:${await findFreePort()}/`;
  await insertTestHook(store, { id: 1, url });
  const ids: number[] = [];
  for (let count = 0; count < 100; count += 1) ids.push(await enqueueTestDelivery(store, { hookId: 1, url }));
  await using worker = startTestWorker(store);
  worker.wake();
  await waitForHookQueue(store, 1, (row) => row.parked === 1);
  const rows = await Promise.all(ids.map((id) => readDelivery(store, id)));
  const attempted = rows.filter((row) => row.attempts > 0).length;
  assert.ok(attempted >= 5 && attempted <= 8, `${attempted} were attempted`);
});

forEachEngine('a stop lets the attempt under way end and stores it', async (store) => {
  const stopping = Promise.withResolvers<void>();
  await using receiver = await startReceiver((_, response) => void stopping.promise.then(() => response.end('late')));
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  const worker = startTestWorker(store);
  const ids: number[] = [];
  for (let count = 0; count < 10; count += 1) ids.push(await enqueueTestDelivery(store, { hookId: 1, url }));
  worker.wake();
  await receiver.waitFor(4);
  const stopped = worker.stop();
  stopping.resolve();
  await stopped;
  await worker.stop();
  const rows = await Promise.all(ids.map((id) => readDelivery(store, id)));
  assert.equal(rows.filter((row) => row.state === 'succeeded').length, receiver.received.length);
  assert.equal(
    rows.filter((row) => row.state === 'pending' && row.attempts === 0).length,
    10 - receiver.received.length,
  );
});

const shardsSql = statement<{ owner: string; expires_at_ms: number }>(
  'test-owned-shards',
  "SELECT owner, expires_at_ms FROM delivery_shards WHERE owner <> ''",
);
const workersSql = statement('test-workers', 'SELECT owner FROM delivery_workers');

forEachEngine(
  'a stop gives back idle shards at once, and keeps that of an attempt until it is stored',
  async (store) => {
    const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
    await using receiver = await startReceiver((_, response) => void mayAnswer.then(() => response.end('ok')));
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    const ids: number[] = [];
    for (let count = 0; count < 6; count += 1) ids.push(await enqueueTestDelivery(store, { hookId: 1, url }));
    await using worker = startTestWorker(store);
    // Also when the test fails, since the worker waits for its attempts when it stops.
    using _end = { [Symbol.dispose]: answer };
    worker.wake();
    await receiver.waitFor(4);
    const stopped = worker.stop();
    const readShards = () => store.read(shardsSql);
    const [first] = await waitUntil(async () => {
      const shards = await readShards();
      return shards.length === 1 && shards;
    });
    assert.deepEqual(await store.read(workersSql), [], 'the others do not count it');
    await waitUntil(async () => (await readShards())[0]!.expires_at_ms > first!.expires_at_ms);
    answer();
    await stopped;
    assert.deepEqual(await readShards(), []);
    const rows = await Promise.all(ids.map((id) => readDelivery(store, id)));
    assert.deepEqual(rows.map(({ state, attempts }) => `${state} ${attempts}`).sort(), [
      ...Array(2).fill('pending 0'),
      ...Array(4).fill('succeeded 1'),
    ]);
  },
);

forEachEngine(
  'a forbidden url that was stored without a check of its address is blocked, with no connection',
  async (store) => {
    // No engine stores NUL.
    const urls = FORBIDDEN_TARGETS.map(([, url]) => url).filter((url) => !url.includes('\0'));
    await using worker = createTestWorker(store, []);
    const ids: number[] = [];
    for (const [index, url] of urls.entries()) {
      await insertTestHook(store, { id: index + 1, url });
      ids.push(await enqueueTestDelivery(store, { hookId: index + 1, url }));
    }
    worker.start();
    for (const [index, id] of ids.entries()) {
      const row = await waitForDelivery(store, id);
      assert.deepEqual([row.state, row.attempts, row.status], ['blocked', 1, 0], JSON.stringify(urls[index]));
      const [attempt] = await readAttempts(store, id);
      assert.deepEqual([attempt?.reason, attempt?.remote_address], ['blocked address', null]);
    }
  },
);

interface AnswerOfOther {
  readonly title: string;
  /** How the first call fails that makes the delivery pending again. */
  readonly fault?: Failure;
}

const ANSWERS_OF_OTHERS: readonly AnswerOfOther[] = [
  { title: 'does not last: the delivery is sent again' },
  {
    title: 'does not last if the database is away at that moment',
    fault: new Failure('unavailable', 'The database is away'),
  },
  {
    title: 'lasts if the database refuses the change, which is logged once',
    fault: new Failure('internal', 'Cannot run this', {}, { cause: new Error('no such column') }),
  },
];
for (const { title, fault } of ANSWERS_OF_OTHERS)
  forEachEngine(`a success that answered another request ${title}`, async (store) => {
    const NO = 'HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n';
    const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    const sockets: Socket[] = [];
    await using receiver = await startRawReceiver((socket, connection) => {
      sockets.push(socket);
      onRequest(socket, () => void socket.write(connection > 0 ? NO : OK));
    });
    const { url } = receiver;
    await insertTestHook(store, { id: 1, url });
    let calls = 0;
    const call: Store['call'] = async (procedure, input) => {
      if (procedure.name === reopenDoubtful.name) calls += 1;
      if (calls === 1 && fault !== undefined) throw fault;
      return await store.call(procedure, input);
    };
    const errors: string[] = [];
    const write = (line: string) => void errors.push(line);
    await using worker = startTestWorker({ ...store, call }, undefined, realWorld, createLog('error', { write }));
    const first = await enqueueTestDelivery(store, { hookId: 1, url });
    worker.wake();
    await waitForDelivery(store, first);
    // The connection may be used again by then.
    await realWorld.sleep(20);
    const second = await enqueueTestDelivery(store, { hookId: 1, url });
    worker.wake();
    await waitForDelivery(store, second);
    sockets[0]?.write(NO);
    if (fault?.code === 'internal') {
      await waitUntil(() => errors.join().includes('Cannot requeue'));
      assert.match(errors.join(), /no such column/);
      assert.equal((await readDelivery(store, second)).state, 'succeeded');
      return;
    }
    const row = await waitForDelivery(store, second, ({ attempts }) => attempts === 2);
    assert.deepEqual([row.state, row.status], ['pending', 404]);
    assert.equal((await readDelivery(store, first)).attempts, 1);
  });

forEachEngine('a hook that changes while ids are waited for gets its delivery as it is then', async (store) => {
  await using receiver = await startReceiver();
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url: `${url}/before` });
  let hasChanged = false;
  const makeIds: Store['makeIds'] = async (count) => {
    if (!hasChanged) {
      hasChanged = true;
      // Enough time for a read that began before.
      for (let reads = 0; reads < 3; reads += 1) await readDelivery(store, id);
      await store.write(statement('test-change-url', 'UPDATE hooks SET url = $1 WHERE id = 1'), [`${url}/after`]);
    }
    return await store.makeIds(count);
  };
  // Its content is not read together with its row.
  const id = await enqueueTestDelivery(store, { hookId: 1, url, body: Buffer.alloc(20_000, 'a') });
  await using _worker = startTestWorker({ ...store, makeIds });
  await waitForDelivery(store, id);
  assert.deepEqual(
    receiver.received.map(({ path }) => path),
    ['/hook/after'],
  );
});
