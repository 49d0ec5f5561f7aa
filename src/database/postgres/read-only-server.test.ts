/** A server that accepts no writes for long, such as one whose disk is full: writes are refused soon, and reads go on. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { startCutProxy } from '../../../test/support/network/cut-proxy.ts';
import { findReasonToSkip, openTestStore } from '../../../test/support/store/engines.ts';
import {
  findNoteSql,
  insertNoteSql,
  insertWithinLimit,
  noteMigration,
} from '../../../test/support/store/note-store.ts';
import {
  createTestDatabase,
  type PostgresCluster,
  startPostgresCluster,
} from '../../../test/support/store/postgres-cluster.ts';
import type { Failure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld, type World } from '../../world.ts';
import { migrations } from '../migrations/list.ts';
import type { Store } from '../store.ts';
import { RECONNECT_DELAYS_MS } from './postgres-clients.ts';

const skip = findReasonToSkip('postgres');

// A separate server, since its configuration changes.
let cluster: PostgresCluster;
let admin: pg.Client;
let store: Store;
let databaseUrl: string;
let options: Parameters<typeof openTestStore>[1];
const lines: string[] = [];
const waits: number[] = [];
const clock = { aheadMs: 0 };

before(async () => {
  if (skip) return;
  cluster = await startPostgresCluster();
  databaseUrl = await createTestDatabase(cluster.socketDir, 'read_only');
  const world: World = {
    ...realWorld,
    monotonicMs: () => realWorld.monotonicMs() + clock.aheadMs,
    // Other waits, such as those for an answer of the server, stay as they are.
    sleep: async (ms, signal) =>
      RECONNECT_DELAYS_MS.includes(ms) ? void waits.push(ms) : await realWorld.sleep(ms, signal),
  };
  const log = createLog('warn', { write: (line) => lines.push(line) });
  options = { migrations: [...migrations, noteMigration], world, log };
  store = await openTestStore({ dataDir: '', databaseUrl }, options);
  admin = new pg.Client(databaseUrl);
  await admin.connect();
});

after(async () => {
  if (skip) return;
  await admin.end();
  await store[Symbol.asyncDispose]();
  await cluster.stop();
});

/** Sessions reload the configuration some time after this. */
async function setReadOnly(isReadOnly: boolean): Promise<void> {
  await admin.query(`ALTER SYSTEM SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`);
  await admin.query('SELECT pg_reload_conf()');
}

async function catchRefusal(write: () => Promise<unknown>): Promise<Failure | undefined> {
  waits.length = 0;
  return await write().then(
    () => undefined,
    (error: Failure) => error,
  );
}

const countLines = (text: string): number => lines.filter((line) => line.includes(text)).length;

test('writes are refused after a few tries, then at once, and accepted again; reads go on all the time', {
  skip,
}, async () => {
  await store.write(insertNoteSql, ['first', 1]);
  await setReadOnly(true);
  let made = 0;
  const insert = () => {
    made += 1;
    return store.write(insertNoteSql, [`note-${made}`, 1]);
  };
  const refusal = await waitUntil(() => catchRefusal(insert));
  assert.deepEqual(
    [refusal.code, refusal.message, refusal.details],
    ['unavailable', 'Cannot use the database right now: it accepts no writes', { retryAfterSeconds: 1 }],
  );
  assert.deepEqual(waits, [20, 100, 400, 1000, 2500], 'as long as a quick failover takes');
  assert.equal(countLines('PostgreSQL accepts no writes'), 1);

  const writes = [insert, () => store.call(insertWithinLimit, { id: 'one', limit: 9 })];
  for (const write of [...writes, ...writes]) {
    assert.equal((await catchRefusal(write))?.message, refusal.message);
    assert.deepEqual(waits, [], 'no try waits for the server');
  }
  assert.equal((await store.read(findNoteSql, ['first'])).length, 1);

  clock.aheadMs += 500;
  assert.equal((await catchRefusal(insert))?.message, refusal.message, 'the server was asked, and still refuses');
  assert.deepEqual(waits, []);
  assert.equal(countLines('PostgreSQL accepts no writes'), 1);

  await setReadOnly(false);
  await waitUntil(async () => {
    clock.aheadMs += 500;
    return (await catchRefusal(insert)) === undefined;
  });
  await store.call(insertWithinLimit, { id: 'two', limit: 99 });
  assert.equal(countLines('PostgreSQL accepts writes again'), 1);
});

/** Changes new sessions only: open ones stay as they are, as connections to a former primary do. */
async function setNewSessionsReadOnly(isReadOnly: boolean): Promise<void> {
  await admin.query(`ALTER ROLE postgres SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`);
}

const endOtherSessions = () =>
  admin.query(
    `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> $1`,
    [(admin as unknown as { processID: number }).processID],
  );

/** Resolves once writes are refused at once. */
async function refuseWrites(insert: () => Promise<unknown>): Promise<void> {
  await setNewSessionsReadOnly(true);
  await endOtherSessions();
  await waitUntil(async () => {
    const refusal = await catchRefusal(insert);
    return refusal?.message === 'Cannot use the database right now: it accepts no writes' && waits.length === 0;
  });
}

test('once a new connection accepts writes, those opened before are used no more', { skip }, async () => {
  const insert = (id: string) => store.write(insertNoteSql, [id, 2]);
  await refuseWrites(() => insert('refused'));
  // As many at a time as the pool has connections; all of these refuse writes, and will continue to.
  await Promise.all(Array.from({ length: 50 }, () => store.read(findNoteSql, ['first'])));
  await setNewSessionsReadOnly(false);
  clock.aheadMs += 500;
  assert.equal(await catchRefusal(() => insert('after')), undefined);
  const writes = await Promise.all(
    Array.from({ length: 20 }, (_, index) => catchRefusal(() => insert(`after-${index}`))),
  );
  assert.deepEqual(
    writes.filter((refusal) => refusal !== undefined),
    [],
  );
  assert.deepEqual(waits, [], 'none was sent again');
});

test('a connection that breaks while it is asked for writes is no error of the program', { skip }, async () => {
  await using proxy = await startCutProxy(databaseUrl);
  await using proxied = await openTestStore({ dataDir: '', databaseUrl: proxy.databaseUrl }, options);
  const insert = () => proxied.write(insertNoteSql, ['broken', 3]);
  await refuseWrites(insert);
  proxy.cutAt('transaction_read_only');
  clock.aheadMs += 500;
  const refusal = await catchRefusal(insert);
  assert.deepEqual([refusal?.code, refusal?.details], ['unavailable', { retryAfterSeconds: 1 }]);
  await setNewSessionsReadOnly(false);
});
