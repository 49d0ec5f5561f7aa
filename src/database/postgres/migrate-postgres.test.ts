import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import pg from 'pg';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { createStorePlace, findReasonToSkip } from '../../../test/support/store/engines.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { openStore } from '../startup/open-store.ts';
import type { Migration } from '../store.ts';
import { findParser } from './column-parsers.ts';
import { migratePostgres } from './migrate-postgres.ts';

const LOCK = 7_294_501;
/** A statement of a pool ends after this time; a migration has no such limit. */
const STATEMENT_TIMEOUT_MS = 2000;
const MINUTE_MS = 60_000;

const migrations: Migration[] = [
  {
    id: 1,
    name: 'slow',
    // A wait for the lock itself would end at the lock timeout; a running migration has no time limit.
    statements: [
      'CREATE TABLE slow (id {INT} NOT NULL)',
      `DO $$ BEGIN WHILE NOT pg_try_advisory_xact_lock(${LOCK}) LOOP PERFORM pg_sleep(0.02); END LOOP; END $$`,
    ],
  },
  { id: 2, name: 'later', statements: ['CREATE TABLE later (id {INT} NOT NULL)'] },
];

/** Processes that migrate one database, the first of which is in a migration until the test lets it go on. */
async function startSlowMigration() {
  const parts = new AsyncDisposableStack();
  const { dataDir, databaseUrl } = await createStorePlace('postgres');
  parts.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  const client = new pg.Client(databaseUrl);
  await client.connect();
  parts.defer(() => client.end());
  await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
  let passedMs = 0;
  const startProcess = () => {
    const types = { getTypeParser: findParser };
    const pool = new pg.Pool({ connectionString: databaseUrl, max: 1, statement_timeout: STATEMENT_TIMEOUT_MS, types });
    parts.defer(() => pool.end());
    let waits = 0;
    const sleep = async (ms: number) => {
      waits += 1;
      // As long as the program waits before its next try.
      await realWorld.sleep(ms);
    };
    const world = { ...realWorld, nowMs: () => realWorld.nowMs() + passedMs, sleep };
    const migrated = migratePostgres({ pool, migrations, world, log: createLog('silent') });
    // It is awaited later.
    migrated.catch(() => {});
    return { migrated, countWaits: () => waits };
  };
  const first = startProcess();
  const slowSql = `SELECT pid FROM pg_stat_activity WHERE query LIKE 'DO %(${LOCK})%' AND state = 'active'`;
  const queueSql = `SELECT 1 FROM pg_stat_activity WHERE (${slowSql}) = ANY(pg_blocking_pids(pid))`;
  await waitUntil(async () => (await client.query(slowSql)).rows.length === 1);
  return {
    first,
    startProcess,
    /** A whole store, on a machine whose clock is ahead. */
    openStore: async (aheadMs: number) => {
      const world = { ...realWorld, nowMs: () => realWorld.nowMs() + aheadMs };
      parts.use(await openStore({ dataDir, databaseUrl, migrations, world, log: createLog('silent') }));
    },
    letTimePass: (ms: number) => {
      passedMs += ms;
    },
    /** Resolves when another process waits for the lease that the migration has locked. */
    waitForQueue: () => waitUntil(async () => (await client.query(queueSql)).rows.length > 0),
    goOn: () => client.query('SELECT pg_advisory_unlock($1)', [LOCK]),
    [Symbol.asyncDispose]: async () => {
      await client.query('SELECT pg_advisory_unlock_all()');
      await parts.disposeAsync();
    },
  };
}

test('a process that starts during a long migration waits for it, and longer than a statement may', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  await using slow = await startSlowMigration();
  const second = slow.startProcess();
  const hasFailed = second.migrated.then(
    () => assert.fail('It did not wait'),
    (error: Error) => assert.fail(error),
  );
  const startedMs = realWorld.monotonicMs();
  const hasWaited = waitUntil(
    () => second.countWaits() >= 2 && realWorld.monotonicMs() - startedMs > STATEMENT_TIMEOUT_MS,
  );
  await Promise.race([hasWaited, hasFailed]);
  hasFailed.catch(() => {});
  await slow.goOn();
  await Promise.all([slow.first.migrated, second.migrated]);
});

test('a migration that takes longer than the lease loses it to no process that waits', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  await using slow = await startSlowMigration();
  slow.letTimePass(2 * MINUTE_MS);
  const others = Array.from({ length: 3 }, () => slow.startProcess());
  await slow.waitForQueue();
  await slow.goOn();
  await Promise.all([slow.first, ...others].map(({ migrated }) => migrated));
});

test('a process whose clock is ahead takes the lease of migrations from no other one', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  await using slow = await startSlowMigration();
  const ahead = slow.openStore(60 * MINUTE_MS);
  await slow.waitForQueue();
  await slow.goOn();
  await Promise.all([slow.first.migrated, ahead]);
});

const ANSWER_MS = 20_000;

test('a migration that needs the lock of a table lets others use the table while a backup reads it', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  await using parts = new AsyncDisposableStack();
  const { dataDir, databaseUrl } = await createStorePlace('postgres');
  parts.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  const pool = new pg.Pool({ connectionString: databaseUrl, statement_timeout: ANSWER_MS });
  parts.defer(() => pool.end());
  await pool.query('CREATE TABLE busy (id BIGINT NOT NULL)');
  const backup = await pool.connect();
  await backup.query('BEGIN');
  await backup.query('LOCK TABLE busy IN ACCESS SHARE MODE');
  const widen: Migration = { id: 1, name: 'widen', statements: ['ALTER TABLE busy ADD COLUMN more {INT}'] };
  const options = { dataDir, databaseUrl, migrations: [widen], world: realWorld, log: createLog('silent') };
  const upgraded = openStore(options);
  parts.defer(async () => {
    backup.release(true);
    await (await upgraded)[Symbol.asyncDispose]();
  });
  const waitingSql = "SELECT 1 FROM pg_locks WHERE relation = 'busy'::regclass AND NOT granted";
  await waitUntil(async () => (await backup.query(waitingSql)).rows.length > 0);
  await pool.query('SELECT id FROM busy');
  await pool.query('INSERT INTO busy VALUES (1)');
  await backup.query('COMMIT');
  await upgraded;
  assert.equal((await pool.query('SELECT more FROM busy')).rows.length, 1);
});

for (const deadlockTimeout of ['1s', '2500ms'])
  test(`a migration waits for a table until an autovacuum is ended for it: deadlock_timeout is ${deadlockTimeout}`, {
    skip: findReasonToSkip('postgres'),
  }, async () => {
    await using parts = new AsyncDisposableStack();
    const { dataDir, databaseUrl } = await createStorePlace('postgres');
    parts.defer(() => rmSync(dataDir, { recursive: true, force: true }));
    const pool = new pg.Pool({ connectionString: databaseUrl });
    parts.defer(() => pool.end());
    const { rows: names } = await pool.query<{ name: string }>('SELECT current_database() AS name');
    await pool.query(`ALTER DATABASE "${names[0]!.name}" SET deadlock_timeout = '${deadlockTimeout}'`);
    const record = `CREATE TABLE waits AS SELECT
      current_setting('lock_timeout')::interval - current_setting('deadlock_timeout')::interval AS longer`;
    const migrations: Migration[] = [{ id: 1, name: 'record', statements: [record] }];
    parts.use(await openStore({ dataDir, databaseUrl, migrations, world: realWorld, log: createLog('silent') }));
    const { rows } = await pool.query("SELECT longer >= '1 second' AS is_enough FROM waits");
    assert.deepEqual(rows, [{ is_enough: true }]);
  });
