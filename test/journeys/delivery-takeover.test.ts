/**
 * Two processes of the service share the deliveries of one PostgreSQL. One is killed or suspended; the other takes over its
 * deliveries once its leases have expired, and sends only those again that the first one had under way.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { type Store, statement } from '../../src/database/store.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { type Receiver, startReceiver } from '../support/network/receiver.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, findReasonToSkip, openTestStore } from '../support/store/engines.ts';
import { enqueueTestDelivery, insertTestHook } from '../support/webhooks/deliveries-store.ts';

/** As many destinations, so that both processes have some. */
const RECEIVERS = 24;
const DELIVERIES_EACH = 60;
const DELIVERIES = RECEIVERS * DELIVERIES_EACH;
/** The maximum number of deliveries that are sent but not yet stored when a worker dies. */
const MAX_UNDER_WAY = 256;

const sharesSql = statement<{ owner: string; count: number }>(
  'test-shares',
  `SELECT owner, COUNT(*) AS count FROM delivery_shards WHERE owner <> '' GROUP BY owner`,
);
const workerOfSql = statement<{ hook_id: number; owner: string }>(
  'test-worker-of',
  `SELECT q.hook_id, s.owner FROM endpoint_queue q JOIN delivery_shards s ON s.shard = q.shard`,
);
const pendingSql = statement<{ uuid: string }>(
  'test-pending-uuids',
  `SELECT c.uuid FROM deliveries d JOIN delivery_contents c ON c.delivery_id = d.id WHERE d.state = 'pending'`,
);

interface ResultRow {
  readonly id: number;
  readonly state: string;
  readonly status: number;
  readonly due_at_ms: number;
  readonly attempts: number;
  readonly logged: number;
}

const resultsSql = statement<ResultRow>(
  'test-results',
  `SELECT d.id, d.state, d.status, d.attempts, d.due_at_ms,
     (SELECT COUNT(*) FROM delivery_attempts a WHERE a.delivery_id = d.id) AS logged
   FROM deliveries d ORDER BY d.id`,
);

async function waitForShares(store: Store, owners: number): Promise<void> {
  await waitUntil(async () => {
    const rows = await store.read(sharesSql);
    return rows.length === owners && rows.every(({ count }) => count === 256 / owners);
  });
}

async function enqueueAll(store: Store, receivers: readonly Receiver[]): Promise<void> {
  for (const [index, { url }] of receivers.entries()) await insertTestHook(store, { id: index + 1, url });
  for (let round = 0; round < DELIVERIES_EACH; round += 1)
    await Promise.all(
      receivers.map(({ url }, index) =>
        enqueueTestDelivery(store, { hookId: index + 1, url, ownerId: `owner-${index % 8}` }),
      ),
    );
}

const uuidsOf = (receivers: readonly Receiver[]): string[] =>
  receivers.flatMap(({ received }) => received.map(({ headers }) => String(headers['x-gitcode-delivery'])));

/** Waits until the receivers of both workers have got deliveries, but no worker has finished. */
async function waitUntilBothDeliver(store: Store, receivers: readonly Receiver[]): Promise<void> {
  const rows = await store.read(workerOfSql);
  const byOwner = [...Map.groupBy(rows, (row) => row.owner).values()];
  assert.equal(byOwner.length, 2, 'both workers have destinations');
  for (const hooks of byOwner) await Promise.any(hooks.map(({ hook_id }) => receivers[hook_id - 1]!.waitFor(4)));
}

async function waitUntilNothingPends(store: Store): Promise<void> {
  await waitUntil(async () => (await store.read(pendingSql)).length === 0);
}

interface Scene {
  readonly store: Store;
  readonly receivers: readonly Receiver[];
  readonly victim: Program;
  readonly survivor: Program;
}

/** Both programs are in the middle of many deliveries. */
async function openScene(undo: AsyncDisposableStack): Promise<Scene> {
  const place = await createStorePlace('postgres');
  undo.defer(() => rmSync(place.dataDir, { recursive: true, force: true, maxRetries: 20 }));
  const store = undo.use(await openTestStore(place));
  const receivers: Receiver[] = [];
  // Slow enough that something is always under way.
  for (let count = 0; count < RECEIVERS; count += 1)
    receivers.push(undo.use(await startReceiver((_, response) => void setTimeout(() => response.end('ok'), 200))));
  const start = async (): Promise<Program> =>
    undo.use(
      await startProgram({
        DATABASE_URL: place.databaseUrl ?? '',
        SECRET_KEYS: Buffer.alloc(32, 7).toString('base64'),
        WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
        LOG_LEVEL: 'error',
      }),
    );
  const [victim, survivor] = [await start(), await start()];
  await waitForShares(store, 2);
  await enqueueAll(store, receivers);
  await waitUntilBothDeliver(store, receivers);
  return { store, receivers, victim, survivor };
}

/** The fields of the outcome of a delivery. */
const toResult = ({ id, state, status, due_at_ms }: ResultRow) => ({ id, state, status, due_at_ms });

async function listUnsettled(store: Store): Promise<ReadonlySet<string>> {
  const unsettled = new Set((await store.read(pendingSql)).map(({ uuid }) => uuid));
  assert.ok(unsettled.size > 0, 'it was interrupted in the middle');
  return unsettled;
}

/** Returns the deliveries that were sent twice. */
function checkSent(
  receivers: readonly Receiver[],
  unsettled: ReadonlySet<string>,
  deliveries = DELIVERIES,
): readonly string[] {
  const sent = uuidsOf(receivers);
  assert.equal(new Set(sent).size, deliveries, 'none is lost');
  const repeated = sent.filter((uuid, index) => sent.indexOf(uuid) !== index);
  assert.ok(repeated.length <= MAX_UNDER_WAY);
  for (const uuid of repeated) assert.ok(unsettled.has(uuid), `${uuid} was settled, and sent again`);
  assert.equal(new Set(repeated).size, repeated.length, 'none came three times');
  return repeated;
}

test('a worker that is killed is followed by the other, which repeats only what was under way', {
  skip: findReasonToSkip('postgres'),
}, async (t) => {
  await using undo = new AsyncDisposableStack();
  const { store, receivers, victim, survivor } = await openScene(undo);
  await victim.kill();
  const unsettled = await listUnsettled(store);
  await waitUntilNothingPends(store);
  assert.equal(await survivor.stop(), 0);
  t.diagnostic(`${checkSent(receivers, unsettled).length} of ${DELIVERIES} were sent twice`);
});

test('a worker that does not run for longer than its leases sends nothing again when it goes on, and changes no result', {
  skip: findReasonToSkip('postgres'),
}, async (t) => {
  await using undo = new AsyncDisposableStack();
  const { store, receivers, victim, survivor } = await openScene(undo);
  process.kill(victim.pid, 'SIGSTOP');
  const unsettled = await listUnsettled(store);
  await waitUntilNothingPends(store);
  const before = await store.read(resultsSql);
  process.kill(victim.pid, 'SIGCONT');
  // It has renewed its leases and stored its late results.
  await waitForShares(store, 2);
  const next = await enqueueTestDelivery(store, { hookId: 1, url: receivers[0]!.url, ownerId: 'owner-0' });
  await receivers[0]!.waitFor(DELIVERIES_EACH + 1);
  await waitUntilNothingPends(store);
  assert.deepEqual([await victim.stop(), await survivor.stop()], [0, 0]);
  const after = await store.read(resultsSql);
  assert.deepEqual(
    after.filter(({ id }) => id !== next).map(toResult),
    before.map(toResult),
    'late results change none',
  );
  assert.deepEqual(after.find(({ id }) => id === next)?.state, 'succeeded');
  for (const { id, attempts, logged } of after) assert.equal(attempts, logged, `attempts of ${id}`);
  const attempts = after.reduce((sum, row) => sum + row.attempts, 0);
  assert.ok(attempts >= uuidsOf(receivers).length, 'each request that came is in the log');
  t.diagnostic(`${checkSent(receivers, unsettled, DELIVERIES + 1).length} of ${DELIVERIES} were sent twice`);
});
