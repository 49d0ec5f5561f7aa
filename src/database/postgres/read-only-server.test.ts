/** A server that accepts no writes for long, such as one whose disk is full: writes are refused soon, and reads go on. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { findReasonToSkip, openTestStore } from '../../../test/support/engines.ts';
import { findNoteSql, insertNoteSql, insertWithinLimit, noteMigration } from '../../../test/support/note-store.ts';
import {
  createTestDatabase,
  type PostgresCluster,
  startPostgresCluster,
} from '../../../test/support/postgres-cluster.ts';
import { waitUntil } from '../../../test/support/wait-until.ts';
import type { Failure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld, type World } from '../../world.ts';
import { migrations } from '../migrations/list.ts';
import type { Store } from '../store.ts';

const skip = findReasonToSkip('postgres');

// A server of its own, since its configuration changes.
let cluster: PostgresCluster;
let admin: pg.Client;
let store: Store;
const lines: string[] = [];
const waits: number[] = [];
const clock = { aheadMs: 0 };

before(async () => {
  if (skip) return;
  cluster = await startPostgresCluster();
  const databaseUrl = await createTestDatabase(cluster.socketDir, 'read_only');
  const world: World = {
    ...realWorld,
    monotonicMs: () => realWorld.monotonicMs() + clock.aheadMs,
    sleep: async (ms) => void waits.push(ms),
  };
  const log = createLog('warn', { write: (line) => lines.push(line) });
  store = await openTestStore({ dataDir: '', databaseUrl }, { migrations: [...migrations, noteMigration], world, log });
  admin = new pg.Client(databaseUrl);
  await admin.connect();
});

after(async () => {
  if (skip) return;
  await admin.end();
  await store[Symbol.asyncDispose]();
  await cluster.stop();
});

/** Sessions read the configuration again some time after that. */
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
