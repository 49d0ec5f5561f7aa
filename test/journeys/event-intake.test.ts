/** Many callers publish events of one repository at once, over HTTP with a real token, on one process or two. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Store, statement } from '../../src/database/store.ts';
import { sweepDeliveries } from '../../src/webhooks/delivery/worker/delivery-sweeper.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { type Receiver, startReceiver } from '../support/network/receiver.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir } from '../support/programs/start-program.ts';
import {
  createStorePlace,
  engines,
  findReasonToSkip,
  openTestStore,
  type TestEngine,
} from '../support/store/engines.ts';
import { createTestDatabase, startPostgresCluster } from '../support/store/postgres-cluster.ts';
import {
  numberedPush,
  type PublishingService,
  startPublishingService,
} from '../support/webhooks/publishing-service.ts';

const CALLERS = 64;
const PATIENTLY = { timeout: 180_000 };

interface Accepted {
  readonly caller: number;
  readonly number: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly id: number;
  readonly deliveries: readonly { readonly id: number; readonly hook_id: number; readonly uuid: string }[];
}

interface Scene {
  readonly service: PublishingService;
  readonly receivers: readonly Receiver[];
  readonly store: Store;
}

/** On SQLite only one process can use a folder; on PostgreSQL two share a database. */
function withPrograms(title: string, hooks: number, run: (scene: Scene) => Promise<void>): void {
  for (const engine of engines)
    test(`${title} (${engine})`, { skip: findReasonToSkip(engine), ...PATIENTLY }, async () => {
      await using undo = new AsyncDisposableStack();
      await run(await openScene(engine, hooks, undo));
    });
}

async function openScene(engine: TestEngine, hooks: number, undo: AsyncDisposableStack): Promise<Scene> {
  const receivers: Receiver[] = [];
  for (let count = 0; count < hooks; count += 1) receivers.push(undo.use(await startReceiver()));
  const place = await createStorePlace(engine);
  const processes = engine === 'sqlite' ? 1 : 2;
  const urls = receivers.map(({ url }) => url);
  const service = undo.use(await startPublishingService({ place, processes, urls }));
  return { service, receivers, store: undo.use(await openTestStore(place)) };
}

interface Publication {
  readonly caller: number;
  readonly number: number;
  readonly key?: string;
}

async function publish(service: PublishingService, { caller, number, key }: Publication) {
  const startMs = Date.now();
  const response = await fetch(service.eventsUrl(caller), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.token}`,
      'content-type': 'application/json',
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    body: JSON.stringify(numberedPush(number)),
  });
  const text = await response.text();
  assert.equal(response.status, 202, text);
  return { caller, number, startMs, endMs: Date.now(), ...(JSON.parse(text) as object) } as Accepted;
}

/** Every caller sends its next event when the last one was accepted. */
async function publishMany(service: PublishingService, callers: number, each: number): Promise<Accepted[]> {
  const runs = Array.from({ length: callers }, async (_, caller) => {
    const accepted: Accepted[] = [];
    for (let count = 0; count < each; count += 1)
      accepted.push(await publish(service, { caller, number: caller * each + count + 1 }));
    return accepted;
  });
  return (await Promise.all(runs)).flat();
}

const listDeliveriesSql = statement<{ id: number; hook_id: number; event_id: number; uuid: string; state: string }>(
  'test-intake-deliveries',
  `SELECT d.id, d.hook_id, c.event_id, c.uuid, d.state FROM deliveries d
   JOIN delivery_contents c ON c.delivery_id = d.id ORDER BY d.hook_id, d.id`,
);
const countEventsSql = statement<{ count: number }>('test-intake-events', 'SELECT COUNT(*) AS count FROM events');

const uuidsOf = (receiver: Receiver): unknown[] =>
  receiver.received.map(({ headers }) => headers['x-gitcode-delivery']);

withPrograms('64 callers at once: no event is refused, and each is delivered once to every hook', 4, async (scene) => {
  const { service, receivers, store } = scene;
  const accepted = await publishMany(service, CALLERS, 8);
  for (const receiver of receivers) await receiver.waitFor(accepted.length);

  const rows = await store.read(listDeliveriesSql);
  const promised = accepted.flatMap(({ id: event_id, deliveries }) =>
    deliveries.map(({ id, hook_id, uuid }) => ({ id, hook_id, event_id, uuid })),
  );
  const byId = (one: { id: number }, other: { id: number }) => one.id - other.id;
  assert.deepEqual(
    rows.map(({ id, hook_id, event_id, uuid }) => ({ id, hook_id, event_id, uuid })).sort(byId),
    promised.sort(byId),
    'what was promised is what is stored',
  );
  assert.equal(rows.length, accepted.length * receivers.length);
  for (const [index, hookId] of service.hookIds.entries()) {
    const expected = rows.filter((row) => row.hook_id === hookId).map((row) => row.uuid);
    const arrived = uuidsOf(receivers[index]!);
    assert.equal(arrived.length, expected.length, `hook ${hookId}`);
    assert.deepEqual(new Set(arrived), new Set(expected), `hook ${hookId}`);
  }
  checkOrder(accepted);
});

/** An event that was accepted before another was published comes before it, whichever process accepted them. */
function checkOrder(accepted: readonly Accepted[]): void {
  const CLOCK_STEP_MS = 1;
  const byEnd = accepted.toSorted((one, other) => one.endMs - other.endMs);
  let ended = 0;
  let newestId = 0;
  for (const later of accepted.toSorted((one, other) => one.startMs - other.startMs)) {
    for (; byEnd[ended]!.endMs + CLOCK_STEP_MS < later.startMs; ended += 1)
      newestId = Math.max(newestId, byEnd[ended]!.id);
    assert.ok(later.id > newestId, `event ${later.number} is stored before its predecessor`);
  }
}

withPrograms('a command that publishes beside the service makes no id that the service makes', 1, async (scene) => {
  const { service, receivers, store } = scene;
  const COUNT = 200;
  const argv = ['event', 'send', 'grace/doors', '--sample', '--count', String(COUNT), '--json'];
  const runs = [argv, argv].map((words) => runTrivet(words, { env: service.environment }));
  const [accepted, ...commands] = await Promise.all([publishMany(service, 16, 20), ...runs]);
  for (const { code, stderr } of commands) assert.equal(code, 0, stderr);
  const published = commands
    .flatMap(({ stdout }) => stdout.trim().split('\n'))
    .map((line) => JSON.parse(line) as Accepted);
  const ids = [...accepted, ...published].flatMap(({ id, deliveries }) => [id, ...deliveries.map((one) => one.id)]);
  assert.equal(new Set(ids).size, ids.length);
  assert.equal(ids.length, 2 * (accepted.length + 2 * COUNT));
  await receivers[0]!.waitFor(accepted.length + 2 * COUNT);
  assert.deepEqual(await store.read(countEventsSql), [{ count: accepted.length + 2 * COUNT }]);
});

withPrograms('of many publications under one key, whichever process takes them, one is made', 2, async (scene) => {
  const { service, store } = scene;
  const KEYS = 8;
  const answers = await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      // Every caller goes through all keys, half of them backwards.
      const order = Array.from({ length: KEYS }, (__, index) => (caller % 4 < 2 ? index : KEYS - 1 - index));
      const answered: Accepted[] = [];
      for (const number of order) answered.push(await publish(service, { caller, number, key: `key-${number}` }));
      return answered;
    }),
  );
  const idsByNumber = Map.groupBy(answers.flat(), ({ number }) => number);
  for (const same of idsByNumber.values()) assert.equal(new Set(same.map(({ id }) => id)).size, 1);
  assert.equal(idsByNumber.size, KEYS);
  assert.deepEqual(await store.read(countEventsSql), [{ count: KEYS }]);
});

withPrograms('hooks that change meanwhile lose nothing and leave nothing waiting', 3, async (scene) => {
  const { service, receivers, store } = scene;
  const [stayingId, deletedId, heldId] = service.hookIds as [number, number, number];
  const hooks = '/api/v5/repos/grace/doors/hooks';
  const url = receivers[2]!.url;
  let answered = 0;
  // Often: what comes next must come in the middle of the load.
  const waitForAnswers = (count: number) => waitUntil(() => answered >= count, 1);
  const accepted: Accepted[] = [];
  const callers = Array.from({ length: 16 }, async (_, caller) => {
    for (let count = 0; count < 16; count += 1) {
      accepted.push(await publish(service, { caller, number: caller * 16 + count + 1 }));
      answered += 1;
    }
  });
  await waitForAnswers(40);
  assert.equal((await service.call('PATCH', `${hooks}/${heldId}`, { url, active: false })).status, 200);
  const created = await service.call('POST', hooks, { url: receivers[0]!.url });
  assert.equal(created.status, 201);
  await waitForAnswers(120);
  assert.equal((await service.call('DELETE', `${hooks}/${deletedId}`)).status, 204);
  await Promise.all(callers);
  assert.equal((await service.call('PATCH', `${hooks}/${heldId}`, { url, active: true })).status, 200);
  await receivers[2]!.waitFor(accepted.length);
  await sweepDeliveries(store, Date.now());

  const rows = Map.groupBy(await store.read(listDeliveriesSql), (row) => row.hook_id);
  assert.equal(rows.get(stayingId)?.length, accepted.length);
  assert.equal(rows.get(heldId)?.length, accepted.length);
  assert.equal(new Set(uuidsOf(receivers[2]!)).size, accepted.length);
  const promised = Map.groupBy(
    accepted.flatMap(({ deliveries }) => deliveries),
    (delivery) => delivery.hook_id,
  );
  for (const [hookId, some] of promised) assert.equal(rows.get(hookId)?.length, some.length, `hook ${hookId}`);
  const isOver = (state: string) => state === 'succeeded' || state === 'canceled';
  // One under way when its hook was deleted is settled, or swept by now.
  for (const row of rows.get(deletedId) ?? []) assert.ok(isOver(row.state), `${row.id} is ${row.state}`);
});

const countDeadlocksSql = statement<{ count: number }>(
  'test-intake-deadlocks',
  'SELECT COALESCE(SUM(deadlocks), 0) AS count FROM pg_stat_database',
);

const countOrphansSql = statement<{ count: number }>(
  'test-events-without-repository',
  'SELECT COUNT(*) AS count FROM events WHERE repository_id NOT IN (SELECT id FROM repositories)',
);

// PostgreSQL looks for a deadlock only after a second, for which the events of all others would wait too.
test('repositories that are deleted and made again meanwhile make no deadlock', {
  skip: findReasonToSkip('postgres'),
  ...PATIENTLY,
}, async () => {
  await using undo = new AsyncDisposableStack();
  const receiver = undo.use(await startReceiver());
  // A server of its own, which counts the deadlocks of this test only.
  const cluster = await startPostgresCluster();
  undo.defer(() => cluster.stop());
  const place = { dataDir: createDataDir(), databaseUrl: await createTestDatabase(cluster.socketDir, 'deadlocks') };
  const service = undo.use(await startPublishingService({ place, processes: 2, urls: [receiver.url] }));
  const store = undo.use(await openTestStore(place));
  let isOver = false;
  let number = 0;
  const callers = Array.from({ length: 32 }, async (_, caller) => {
    while (!isOver) {
      number += 1;
      const headers = { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' };
      const response = await fetch(service.eventsUrl(caller), {
        method: 'POST',
        headers: { ...headers, 'idempotency-key': `key-${number % 50}` },
        body: JSON.stringify(numberedPush(number)),
      });
      await response.text();
      assert.ok([202, 404, 409].includes(response.status), String(response.status));
    }
  });
  for (let rounds = 0; rounds < 15; rounds += 1) {
    const hook = { url: receiver.url };
    for (let hooks = 0; hooks < 3; hooks += 1) await service.call('POST', '/api/v5/repos/grace/doors/hooks', hook);
    assert.equal((await service.call('DELETE', '/api/v5/repos/grace/doors')).status, 204);
    assert.equal((await service.call('POST', '/api/v5/user/repos', { name: 'doors' })).status, 201);
  }
  isOver = true;
  await Promise.all(callers);
  assert.deepEqual(await store.read(countDeadlocksSql), [{ count: 0 }]);
  assert.deepEqual(await store.read(countOrphansSql), [{ count: 0 }]);
});
