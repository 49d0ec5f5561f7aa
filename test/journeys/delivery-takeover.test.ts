/**
 * Two processes of the service share the deliveries of one PostgreSQL. One is killed; the other takes what it had once its
 * leases have run out, and sends nothing again but what the dead one had under way.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { type Store, statement } from '../../src/database/store.ts';
import { enqueueTestDelivery, insertTestHook } from '../support/deliveries-store.ts';
import { createStorePlace, findReasonToSkip, openTestStore } from '../support/engines.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Program, startProgram } from '../support/start-program.ts';
import { waitUntil } from '../support/wait-until.ts';

/** As many destinations, so that both processes have some. */
const RECEIVERS = 24;
const DELIVERIES_EACH = 60;
const DELIVERIES = RECEIVERS * DELIVERIES_EACH;
/** Sent and not yet stored, at most, when a worker dies. */
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

/** Until the receivers of both workers have got something, but no worker is through. */
async function waitUntilBothDeliver(store: Store, receivers: readonly Receiver[]): Promise<void> {
  const rows = await store.read(workerOfSql);
  const byOwner = [...Map.groupBy(rows, (row) => row.owner).values()];
  assert.equal(byOwner.length, 2, 'both workers have destinations');
  for (const hooks of byOwner) await Promise.any(hooks.map(({ hook_id }) => receivers[hook_id - 1]!.waitFor(4)));
}

async function waitUntilNothingPends(store: Store): Promise<void> {
  await waitUntil(async () => (await store.read(pendingSql)).length === 0);
}

test('a worker that is killed is followed by the other, which repeats only what was under way', {
  skip: findReasonToSkip('postgres'),
}, async (t) => {
  await using undo = new AsyncDisposableStack();
  const place = await createStorePlace('postgres');
  undo.defer(() => rmSync(place.dataDir, { recursive: true, force: true }));
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
  await victim.kill();
  const unsettled = new Set((await store.read(pendingSql)).map(({ uuid }) => uuid));
  assert.ok(unsettled.size > 0, 'it was killed in the middle');
  await waitUntilNothingPends(store);
  assert.equal(await survivor.stop(), 0);
  const sent = uuidsOf(receivers);
  assert.equal(new Set(sent).size, DELIVERIES, 'none is lost');
  const repeated = sent.filter((uuid, index) => sent.indexOf(uuid) !== index);
  t.diagnostic(`${repeated.length} of ${DELIVERIES} were sent twice`);
  assert.ok(repeated.length <= MAX_UNDER_WAY);
  for (const uuid of repeated) assert.ok(unsettled.has(uuid), `${uuid} was settled, and sent again`);
  assert.equal(new Set(repeated).size, repeated.length, 'none came three times');
});
