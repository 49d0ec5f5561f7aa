/**
 * Deliveries of the real program while it is killed, stopped, or loses its database. TRIVET_LONG=1 makes it 20 kills
 * during 20,000 deliveries.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/open-store.ts';
import { type Store, statement } from '../../src/database/store.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { realWorld } from '../../src/world.ts';
import { enqueueTestDelivery, insertTestHook } from '../support/deliveries-store.ts';
import { findReasonToSkip } from '../support/engines.ts';
import { createTestDatabase, startPostgresCluster } from '../support/postgres-cluster.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { createDataDir, type Program, startProgram } from '../support/start-program.ts';

const isLong = process.env.TRIVET_LONG === '1';
const KILLS = isLong ? 20 : 2;
const DELIVERIES = isLong ? 20_000 : 400;
const HOOKS = 16;
/** Sent and not yet stored, at most, when a worker dies. */
const MAX_UNDER_WAY = 256;

const countPending = statement<{ count: number }>(
  'test_count_pending',
  `SELECT COUNT(*) AS count FROM deliveries WHERE state = 'pending'`,
);

async function openBeside(dataDir: string, databaseUrl?: string): Promise<Store> {
  return await openStore({ dataDir, databaseUrl, poolSize: 4, migrations, world: realWorld, log: createLog('silent') });
}

async function enqueueAll(store: Store, url: string, count: number): Promise<void> {
  for (let hookId = 1; hookId <= HOOKS; hookId += 1) await insertTestHook(store, { id: hookId, url });
  for (let at = 0; at < count; at += 100)
    await Promise.all(
      Array.from({ length: Math.min(100, count - at) }, (_, index) =>
        enqueueTestDelivery(store, { hookId: ((at + index) % HOOKS) + 1, url, ownerId: `owner-${index % 4}` }),
      ),
    );
}

async function waitUntilNothingPends(store: Store): Promise<void> {
  for (;;) {
    const rows = await store.read(countPending).catch(() => []);
    if (rows[0]?.count === 0) return;
    await realWorld.sleep(100);
  }
}

function countDistinct(receiver: Receiver): number {
  return new Set(receiver.received.map((request) => request.headers['x-gitcode-delivery'])).size;
}

const environment = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', LOG_LEVEL: 'warn' };

/** Answers after a little while, so that something is always under way. */
const startSlowReceiver = () => startReceiver((_, response) => void setTimeout(() => response.end('ok'), 20));

test('kill -9 while it delivers loses nothing and repeats no more than was under way', async () => {
  await using receiver = await startSlowReceiver();
  const dataDir = createDataDir();
  const store = await openBeside(dataDir);
  await enqueueAll(store, receiver.url, DELIVERIES);
  let program: Program | undefined;
  for (let kills = 0; kills < KILLS; kills += 1) {
    program = await startProgram(environment, dataDir);
    const soFar = receiver.received.length;
    await receiver.waitFor(Math.min(DELIVERIES, soFar + 1 + Math.floor(realWorld.random() * (DELIVERIES / KILLS / 2))));
    await program.kill();
  }
  program = await startProgram(environment, dataDir);
  await waitUntilNothingPends(store);
  assert.equal(await program.stop(), 0);
  await store[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
  assert.equal(countDistinct(receiver), DELIVERIES);
  assert.ok(receiver.received.length - DELIVERIES <= KILLS * MAX_UNDER_WAY);
});

test('SIGTERM under load ends what is under way, loses nothing and repeats nothing', async () => {
  await using receiver = await startSlowReceiver();
  const dataDir = createDataDir();
  const store = await openBeside(dataDir);
  await enqueueAll(store, receiver.url, DELIVERIES);
  const first = await startProgram(environment, dataDir);
  await receiver.waitFor(DELIVERIES / 10);
  assert.equal(await first.stop(), 0);
  assert.ok(receiver.received.length < DELIVERIES, 'it was stopped in the middle');
  const second = await startProgram(environment, dataDir);
  await waitUntilNothingPends(store);
  assert.equal(await second.stop(), 0);
  await store[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
  assert.equal(countDistinct(receiver), DELIVERIES);
  assert.equal(receiver.received.length, DELIVERIES);
});

test('a database that is killed and comes back loses nothing', { skip: findReasonToSkip('postgres') }, async () => {
  await using receiver = await startSlowReceiver();
  const cluster = await startPostgresCluster({ isDurable: true });
  const databaseUrl = await createTestDatabase(cluster.socketDir, 'deliveries');
  const dataDir = createDataDir();
  const store = await openBeside(dataDir, databaseUrl);
  await enqueueAll(store, receiver.url, DELIVERIES);
  const program = await startProgram({ ...environment, DATABASE_URL: databaseUrl }, dataDir);
  await receiver.waitFor(DELIVERIES / 4);
  await cluster.kill();
  await realWorld.sleep(isLong ? 30_000 : 1000);
  await cluster.start();
  await waitUntilNothingPends(store);
  assert.equal(await program.stop(), 0);
  await store[Symbol.asyncDispose]();
  await cluster.stop();
  rmSync(dataDir, { recursive: true, force: true });
  assert.equal(countDistinct(receiver), DELIVERIES);
  assert.ok(receiver.received.length - DELIVERIES <= MAX_UNDER_WAY);
});
