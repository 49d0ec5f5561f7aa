/** The API shows why and how long nothing is sent to a hook. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { findFreePort } from '../../../test/support/basics/free-port.ts';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { startReceiver } from '../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import {
  enqueueTestDelivery,
  fillTestLog,
  readDelivery,
  waitForDelivery,
} from '../../../test/support/webhooks/deliveries-store.ts';
import { createTestWorker, startTestWorker, waitForHookQueue } from '../../../test/support/webhooks/delivery-worker.ts';
import {
  type Answer,
  type ManagementServer,
  startManagement,
} from '../../../test/support/webhooks/webhook-management.ts';
import { type Store, statement } from '../../database/store.ts';
import { realWorld, type World } from '../../world.ts';
import { countPauses } from '../hooks/hook-status-store.ts';

const HOOKS = '/repos/grace/doors/hooks';
/** Answers show whole seconds. */
const SECOND = 1000;

interface Scene {
  readonly server: ManagementServer;
  readonly store: Store;
  readonly hook: string;
  readonly hookId: number;
  readonly ids: readonly number[];
}

/** A world in which no pause ends by itself, however slow the machine is. */
function haltClock(): World {
  const startMs = realWorld.nowMs();
  return { ...realWorld, nowMs: () => startMs };
}

interface Setting {
  readonly store: Store;
  readonly url: string;
  readonly world?: World;
}

/** A hook with twenty deliveries that wait, and a worker that sends them. */
async function withWaiting(
  { store, url, world = realWorld }: Setting,
  run: (scene: Scene) => Promise<void>,
): Promise<void> {
  await using worker = startTestWorker(store, undefined, world);
  await using server = await startManagement(store, world, worker);
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  const { body } = await server.call('POST', HOOKS, { json: { url } });
  const ids: number[] = [];
  for (let count = 0; count < 20; count += 1)
    ids.push(await enqueueTestDelivery(store, { hookId: body.id, url, nowMs: world.nowMs() }));
  worker.wake();
  await run({ server, store, hook: `${HOOKS}/${body.id}`, hookId: body.id, ids });
}

async function waitForPause({ server, hook }: Scene) {
  return await waitUntil(async () => {
    const { body } = await server.call('GET', hook);
    return body.paused_until !== null && body;
  });
}

const receivers: [reason: string, status: number, headers: Record<string, string>][] = [
  ['failures', 500, {}],
  ['retry_after', 429, { 'retry-after': '3600' }],
];
for (const [reason, status, headers] of receivers)
  forEachEngine(
    `a pause for ${reason} shows since when and until when, and a test that works ends it`,
    async (store) => {
      let isWorking = false;
      await using receiver = await startReceiver((_, response) =>
        isWorking ? response.end('ok') : response.writeHead(status, headers).end(),
      );
      await withWaiting({ store, url: receiver.url }, async (scene) => {
        const { server, hook, ids } = scene;
        const paused = await waitForPause(scene);
        assert.equal(paused.paused_reason, reason);
        assert.ok(Date.parse(paused.paused_since) <= Date.parse(paused.paused_until));
        const beforeMs = realWorld.nowMs();
        const { body: log } = await server.call('GET', `${hook}/deliveries`);
        const { body: after } = await server.call('GET', hook);
        for (const delivery of log) {
          assert.ok(Date.parse(delivery.next_attempt_at) > beforeMs - SECOND, JSON.stringify(delivery));
          if (delivery.attempts > 0 || after.paused_until !== paused.paused_until) continue;
          assert.deepEqual([delivery.waits_for, delivery.next_attempt_at], ['pause', paused.paused_until]);
        }
        isWorking = true;
        assert.equal((await server.call('POST', `${hook}/tests`)).status, 204);
        for (const id of ids) await waitForDelivery(store, id, ({ attempts }) => attempts > 0);
        const { body: free } = await server.call('GET', hook);
        assert.deepEqual([free.paused_since, free.paused_until, free.paused_reason], [null, null, null]);
      });
    },
  );

forEachEngine('a hook whose server cannot be connected to has the pause reason no_connection', async (store) => {
  const world = haltClock();
  const url = `http://127.0.0.1:${await findFreePort()}/hook`;
  await withWaiting({ store, url, world }, async (scene) => {
    assert.equal((await waitForPause(scene)).paused_reason, 'no_connection');
    assert.deepEqual([...(await countPauses(store, world.nowMs()))], [['no_connection', 1]]);
    const { body } = await scene.server.call('GET', HOOKS);
    assert.equal(body[0].paused_reason, 'no_connection');
  });
});

forEachEngine('a test by another process ends the pause of hooks that could not be connected to', async (store) => {
  const world = haltClock();
  const port = await findFreePort();
  await withWaiting({ store, url: `http://127.0.0.1:${port}/hook`, world }, async ({ server, hook, hookId, ids }) => {
    const paused = await waitForHookQueue(store, hookId, (row) => row.parked === 1);
    assert.ok(paused.next_at_ms > world.nowMs());
    await using _receiver = await startReceiver(undefined, port);
    await using other = createTestWorker(store, undefined, world);
    await using elsewhere = await startManagement(store, world, other);
    assert.equal((await elsewhere.call('POST', `${hook}/tests`)).status, 204);
    // The clock stands still, so none of them can have waited for the end of the pause.
    await Promise.all(ids.map((id) => waitForDelivery(store, id, ({ attempts }) => attempts > 0)));
    assert.equal((await server.call('GET', hook)).body.paused_until, null);
  });
});

const ends: [what: string, end: (server: ManagementServer, hook: string) => Promise<Answer>][] = [
  ['sending what waits', async (server, hook) => await server.call('POST', `${hook}/send-waiting`)],
  ['a replay', async (server, hook) => await server.call('POST', `${hook}/replay?since=2026-01-01T00:00:00Z`)],
  ['enabling the webhook', disableAndEnable],
];

async function disableAndEnable(server: ManagementServer, hook: string): Promise<Answer> {
  const { url } = (await server.call('GET', hook)).body;
  await server.call('PATCH', hook, { json: { url, active: false } });
  return await server.call('PATCH', hook, { json: { url, active: true } });
}

for (const [what, end] of ends)
  forEachEngine(`${what} by another process ends the pause of what could not be connected to`, async (store) => {
    const world = haltClock();
    const port = await findFreePort();
    await withWaiting({ store, url: `http://127.0.0.1:${port}/hook`, world }, async ({ server, hook, hookId, ids }) => {
      await waitForHookQueue(store, hookId, (row) => row.parked === 1);
      await using _receiver = await startReceiver(undefined, port);
      await using elsewhere = await startManagement(store, world);
      assert.ok((await end(elsewhere, hook)).status < 300);
      // The clock stands still, so none of them can have waited for the end of the pause.
      await Promise.all(ids.map((id) => waitForDelivery(store, id, ({ attempts }) => attempts > 0)));
      assert.equal((await server.call('GET', hook)).body.paused_until, null);
    });
  });

const failAllSql = statement('test-fail-all', `UPDATE deliveries SET state = 'dead' WHERE hook_id = $1`);

forEachEngine('a pause that the first deliveries of a replay bring about lasts beyond the replay', async (store) => {
  const AT_ONCE = 4;
  const waiting: ServerResponse[] = [];
  const limit = (response: ServerResponse) => response.writeHead(429, { 'retry-after': '3600' }).end();
  await using receiver = await startReceiver((_, response, index) =>
    index < AT_ONCE ? waiting.push(response) : limit(response),
  );
  await withWaiting({ store, url: receiver.url }, async ({ server, hook, hookId, ids }) => {
    await receiver.waitFor(AT_ONCE);
    for (const response of waiting) limit(response);
    // An attempt that came back later would begin a pause too.
    await waitUntil(async () => {
      const rows = await Promise.all(ids.map((id) => readDelivery(store, id)));
      return rows.filter(({ attempts }) => attempts > 0).length === AT_ONCE;
    });
    await waitForHookQueue(store, hookId, (row) => row.parked === 1);
    await fillTestLog(store, { hookId, rows: 1000 });
    await store.write(failAllSql, [hookId]);
    const sentBefore = receiver.received.length;
    const writeAll: Store['writeAll'] = async (statements) => {
      const answers = await store.writeAll(statements);
      if (!statements.some((one) => one.statement.name === 'delivery-restart-some')) return answers;
      await waitForHookQueue(store, hookId, (row) => row.parked === 1);
      return answers;
    };
    await using elsewhere = await startManagement({ ...store, writeAll });
    assert.equal((await elsewhere.call('POST', `${hook}/replay?since=1970-01-01T00:00:00Z`)).body.replayed, 1020);
    const { body } = await server.call('GET', hook);
    assert.equal(body.paused_reason, 'retry_after');
    const sent = receiver.received.length - sentBefore;
    assert.ok(sent > 0 && sent <= AT_ONCE, `${sent} sent`);
  });
});

forEachEngine(
  'a delivery that failed says when its schedule goes on, and one that ended waits for nothing',
  async (store) => {
    await using receiver = await startReceiver((_, response, index) =>
      response.writeHead(index === 0 ? 500 : 200).end(),
    );
    await using worker = startTestWorker(store);
    await using server = await startManagement(store, realWorld, worker);
    await server.call('POST', '/user/repos', { json: { name: 'doors' } });
    const { url } = receiver;
    const { body: made } = await server.call('POST', HOOKS, { json: { url } });
    const ids = [await enqueueTestDelivery(store, { hookId: made.id, url })];
    worker.wake();
    const failed = await waitForDelivery(store, ids[0]!, ({ attempts }) => attempts === 1);
    ids.push(await enqueueTestDelivery(store, { hookId: made.id, url }));
    worker.wake();
    await waitForDelivery(store, ids[1]!);
    const read = async (id: number) => (await server.call('GET', `${HOOKS}/${made.id}/deliveries/${id}`)).body;
    const [first, second] = [await read(ids[0]!), await read(ids[1]!)];
    if (first.attempts === 1)
      assert.deepEqual([first.waits_for, Date.parse(first.next_attempt_at)], ['schedule', floor(failed.due_at_ms)]);
    assert.deepEqual([second.waits_for, second.next_attempt_at], [null, null]);
  },
);

function floor(ms: number): number {
  return Math.floor(ms / SECOND) * SECOND;
}
