/**
 * Deliveries of the real program while it is killed, stopped, or loses its database. TRIVET_LONG=1 makes it 20 kills
 * during 20,000 deliveries, and half a minute without the database.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/startup/open-store.ts';
import { type Store, statement } from '../../src/database/store.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { realWorld } from '../../src/world.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { type Receiver, startReceiver } from '../support/network/receiver.ts';
import { createDataDir, type Program, startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, engines, findReasonToSkip, type StorePlace } from '../support/store/engines.ts';
import { createTestDatabase, type PostgresCluster, startPostgresCluster } from '../support/store/postgres-cluster.ts';
import { enqueueTestDelivery, insertTestHook } from '../support/webhooks/deliveries-store.ts';

const isLong = process.env.TRIVET_LONG === '1';
const KILLS = isLong ? 20 : 2;
const DELIVERIES = isLong ? 20_000 : 400;
const HOOKS = 16;
/** Sent and not yet stored, at most, when a worker dies. */
const MAX_UNDER_WAY = 256;

const countPendingSql = statement<{ count: number }>(
  'test-count-pending',
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
  await waitUntil(async () => {
    const rows = await store.read(countPendingSql).catch(() => []);
    return rows[0]?.count === 0;
  });
}

function countDistinct(receiver: Receiver): number {
  return new Set(receiver.received.map((request) => request.headers['x-gitcode-delivery'])).size;
}

const environment = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', LOG_LEVEL: 'warn' };

/** Answers after a little while, so that something is always under way. */
const startSlowReceiver = () => startReceiver((_, response) => void setTimeout(() => response.end('ok'), 20));

interface Place {
  readonly store: Store;
  readonly start: () => Promise<Program>;
}

/** A database with the deliveries in it, and the program to be started on it. */
async function withDeliveries(place: StorePlace, url: string, run: (place: Place) => Promise<void>): Promise<void> {
  const { dataDir, databaseUrl } = place;
  const store = await openBeside(dataDir, databaseUrl);
  const programs: Program[] = [];
  try {
    await enqueueAll(store, url, DELIVERIES);
    await run({
      store,
      start: async () => {
        const database: Record<string, string> = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
        const program = await startProgram({ ...environment, ...database }, dataDir);
        programs.push(program);
        return program;
      },
    });
  } finally {
    await Promise.all(programs.map((program) => program.kill()));
    await store[Symbol.asyncDispose]();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 20 });
  }
}

for (const engine of engines) {
  const options = { skip: findReasonToSkip(engine) };

  test(
    `kill -9 while it delivers loses nothing and repeats no more than was under way (${engine})`,
    options,
    async (t) => {
      await using receiver = await startSlowReceiver();
      await withDeliveries(await createStorePlace(engine), receiver.url, async ({ store, start }) => {
        for (let kills = 0; kills < KILLS; kills += 1) {
          const program = await start();
          const soFar = receiver.received.length;
          const more = 1 + Math.floor(realWorld.random() * (DELIVERIES / KILLS / 2));
          await receiver.waitFor(Math.min(DELIVERIES, soFar + more));
          await program.kill();
        }
        const program = await start();
        await waitUntilNothingPends(store);
        assert.equal(await program.stop(), 0);
      });
      assert.equal(countDistinct(receiver), DELIVERIES);
      const repeated = receiver.received.length - DELIVERIES;
      t.diagnostic(`${KILLS} kills, ${DELIVERIES} deliveries, ${repeated} sent twice`);
      assert.ok(repeated <= KILLS * MAX_UNDER_WAY);
    },
  );

  test(
    `SIGTERM under load ends what is under way, loses nothing and repeats nothing (${engine})`,
    options,
    async (t) => {
      await using receiver = await startSlowReceiver();
      await withDeliveries(await createStorePlace(engine), receiver.url, async ({ store, start }) => {
        const first = await start();
        await receiver.waitFor(DELIVERIES / 10);
        const startMs = realWorld.monotonicMs();
        assert.equal(await first.stop(), 0);
        t.diagnostic(`it ended after ${Math.round(realWorld.monotonicMs() - startMs)} ms`);
        assert.ok(receiver.received.length < DELIVERIES, 'it was stopped in the middle');
        const second = await start();
        await waitUntilNothingPends(store);
        assert.equal(await second.stop(), 0);
      });
      assert.equal(countDistinct(receiver), DELIVERIES);
      assert.equal(receiver.received.length, DELIVERIES);
    },
  );
}

interface Outage {
  readonly title: string;
  /** How long the database is away in the short form: a frozen server is only noticed after some seconds. */
  readonly awayMs: number;
  readonly begin: (cluster: PostgresCluster) => Promise<void> | void;
  readonly end: (cluster: PostgresCluster) => Promise<void> | void;
}

const OUTAGES: readonly Outage[] = [
  { title: 'is killed', awayMs: 1000, begin: (cluster) => cluster.kill(), end: (cluster) => cluster.start() },
  { title: 'is frozen', awayMs: 9000, begin: (cluster) => cluster.freeze(), end: (cluster) => cluster.thaw() },
];

for (const { title, awayMs, begin, end } of OUTAGES)
  test(`a database that ${title} and comes back loses nothing`, { skip: findReasonToSkip('postgres') }, async (t) => {
    await using receiver = await startSlowReceiver();
    const cluster = await startPostgresCluster({ isDurable: true });
    const place = { dataDir: createDataDir(), databaseUrl: await createTestDatabase(cluster.socketDir, 'deliveries') };
    await withDeliveries(place, receiver.url, async ({ store, start }) => {
      const program = await start();
      await receiver.waitFor(DELIVERIES / 4);
      await begin(cluster);
      // How long the server is away is what is tested.
      await realWorld.sleep(isLong ? 30_000 : awayMs);
      await end(cluster);
      await waitUntilNothingPends(store);
      assert.equal(await program.stop(), 0);
    });
    await cluster.stop();
    assert.equal(countDistinct(receiver), DELIVERIES);
    const repeated = receiver.received.length - DELIVERIES;
    t.diagnostic(`${DELIVERIES} deliveries, ${repeated} sent twice`);
    assert.ok(repeated <= MAX_UNDER_WAY);
  });
