import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { startManagement } from '../../../test/support/webhooks/webhook-management.ts';
import { type Store, statement } from '../../database/store.ts';
import { SWEEP_WITHOUT_PAUSES } from '../../database/sweep.ts';
import { type BodyBudget, createBodyBudget } from '../../http/body/body-budget.ts';
import { realWorld } from '../../world.ts';
import { deleteUnusedContents } from '../delivery/queue/delivery-sweep-store.ts';
import { createSampleEvent } from '../events/sample-event.ts';

const EVENTS = '/repos/grace/doors/events';
const HOOKS = 12;
const push = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));
/** An event of 2.6 MB with all bodies. */
const commit = {
  id: '1'.padStart(40, '0'),
  message: 'm'.repeat(200_000),
  timestamp: '2026-01-01T00:00:00Z',
  author: { name: 'Grace', email: 'grace@example.com' },
};
const large = { ...push, commits: [commit] };

const countsSql = statement<{ events: number; deliveries: number; contents: number; whole: number }>(
  'test-large-counts',
  `SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM deliveries) AS deliveries,
     (SELECT count(*) FROM delivery_contents) AS contents,
     (SELECT count(*) FROM deliveries d JOIN delivery_contents c ON c.delivery_id = d.id
      WHERE d.body_bytes = length(c.body)) AS whole`,
);

async function count(store: Store): Promise<number[]> {
  const [row] = await store.read(countsSql);
  return [row!.events, row!.deliveries, row!.contents, row!.whole];
}

async function startWithHooks(store: Store, bodyBudget = createBodyBudget()) {
  const server = await startManagement(store, realWorld, { bodyBudget });
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  for (let index = 0; index < HOOKS; index += 1)
    await server.call('POST', '/repos/grace/doors/hooks', { json: { url: `http://127.0.0.1:9001/${index}` } });
  return server;
}

/** The bytes of each write. */
function measureWrites(store: Store, sizes: number[]): Store {
  const sizeOf = (value: unknown) => (value instanceof Uint8Array ? value.byteLength : 0);
  return {
    ...store,
    writeAll: async (bound) => {
      sizes.push(bound.flatMap(({ parameters }) => parameters).reduce<number>((sum, one) => sum + sizeOf(one), 0));
      return await store.writeAll(bound);
    },
  };
}

forEachEngine('a large event is stored in parts, and whole', async (store) => {
  const sizes: number[] = [];
  await using server = await startWithHooks(measureWrites(store, sizes));
  const answer = await server.call('POST', EVENTS, { json: large });
  assert.equal(answer.status, 202);
  assert.equal(answer.body.deliveries.length, HOOKS);
  assert.deepEqual(await count(store), [1, HOOKS, HOOKS, HOOKS]);
  assert.ok(sizes.filter((size) => size > 0).length >= 2, 'in parts');
  assert.ok(Math.max(...sizes) < 2_000_000, `the largest of ${sizes.join()}`);
});

forEachEngine('a large event under a key that is taken stores nothing', async (store) => {
  await using server = await startWithHooks(store);
  const headers = { 'idempotency-key': 'k' };
  const answers = await Promise.all([1, 2].map(() => server.call('POST', EVENTS, { json: large, headers })));
  answers.push(await server.call('POST', EVENTS, { json: large, headers }));
  assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
  const other = { ...large, ref: 'refs/heads/other' };
  assert.equal((await server.call('POST', EVENTS, { json: other, headers })).status, 409);
  assert.deepEqual(await count(store), [1, HOOKS, HOOKS, HOOKS]);
});

forEachEngine('a large event whose commit fails leaves nothing behind', async (store) => {
  const failing: Store = {
    ...store,
    writeAll: async (statements, options) => {
      if (statements.some(({ statement: one }) => one.name.startsWith('insert-events'))) throw new Error('no room');
      return await store.writeAll(statements, options);
    },
  };
  await using server = await startWithHooks(failing);
  assert.equal((await server.call('POST', EVENTS, { json: large })).status, 500);
  assert.deepEqual(await count(store), [0, 0, 0, 0]);
});

forEachEngine('bodies without a delivery are swept, others stay', async (store) => {
  await using server = await startWithHooks(store);
  await server.call('POST', EVENTS, { json: push });
  const [lone = 0, after = 0] = await store.makeIds(2);
  await store.write(insertLoneSql, [lone, new Uint8Array([1])]);
  assert.equal(await deleteUnusedContents(store, lone, SWEEP_WITHOUT_PAUSES), 0);
  assert.equal(await deleteUnusedContents(store, after, SWEEP_WITHOUT_PAUSES), 1);
  assert.deepEqual(await count(store), [1, HOOKS, HOOKS, HOOKS]);
});

/** Whether the value is larger than a small event with its bodies. */
function isLarge(value: unknown): boolean {
  return value instanceof Uint8Array && value.byteLength > 100_000;
}

/** Where events are published: by their owner, and with the administration API. */
const PLACES = [
  { path: `/api/v5${EVENTS}`, wrap: (event: object) => event, success: 202 },
  { path: '/api/admin/v1/repositories/grace/doors/events', wrap: (event: object) => ({ event }), success: 200 },
];

for (const { path, wrap, success } of PLACES) {
  forEachEngine(
    `a large request is refused before its body has come while too much of its owner waits: ${path}`,
    async (store) => {
      const { promise: stored, resolve: goOn } = Promise.withResolvers<void>();
      const waiting: Store = {
        ...store,
        writeAll: async (bound) => {
          if (bound.some(({ parameters }) => parameters.some((one) => isLarge(one)))) await stored;
          return await store.writeAll(bound);
        },
      };
      await using server = await startWithHooks(waiting);
      const larger = wrap({ ...push, commits: [commit, commit, commit] });
      const answers = Array.from({ length: 14 }, () => server.call('POST', path, { json: larger }));
      // The last request exceeds the limit.
      assert.equal((await Promise.race(answers)).status, 503);
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1').setEncoding('utf8');
      const head = 'Authorization: Bearer grace\r\nContent-Type: application/json\r\nContent-Length: 600000\r\n\r\n';
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${head}`);
      assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 503 /);
      socket.destroy();
      assert.equal((await server.call('POST', path, { json: wrap(push) })).status, success);
      goOn();
      const statuses = (await Promise.all(answers)).map(({ status }) => status);
      assert.ok(statuses.filter((status) => status === success).length >= 12, statuses.join());
    },
  );

  forEachEngine(`an event that waits for its commit leaves its room to bodies that arrive: ${path}`, async (store) => {
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    const { promise: stored, resolve: goOn } = Promise.withResolvers<void>();
    const waiting: Store = {
      ...store,
      writeAll: async (bound) => {
        if (bound.some(({ parameters }) => parameters.some((one) => isLarge(one)))) {
          enter();
          await stored;
        }
        return await store.writeAll(bound);
      },
    };
    // Has room for one of two events with 200 KB.
    const { budget, arrived } = watchBodies(createBodyBudget({ maxBytes: 300_000 }), 2);
    await using server = await startWithHooks(waiting, budget);
    const first = server.call('POST', path, { json: wrap(large) });
    await entered;
    const second = server.call('POST', path, { json: wrap({ ...large, ref: 'refs/heads/other' }) });
    await arrived;
    goOn();
    assert.deepEqual([(await first).status, (await second).status], [success, success]);
  });
}

/** `arrived` resolves once this many bodies arrived, or one was evicted. */
function watchBodies(bodies: BodyBudget, count: number) {
  const { promise: arrived, resolve } = Promise.withResolvers<void>();
  let complete = 0;
  const budget: BodyBudget = {
    open: (network, giveWay) => {
      const body = bodies.open(network, (refusal) => {
        giveWay(refusal);
        resolve();
      });
      return {
        ...body,
        complete: () => {
          complete += 1;
          if (complete === count) resolve();
          return body.complete();
        },
      };
    },
  };
  return { budget, arrived };
}

const insertLoneSql = statement(
  'test-insert-lone-contents',
  "INSERT INTO delivery_contents (delivery_id, hook_id, event_id, uuid, body) VALUES ($1, 1, 1, 'lone', $2)",
);
