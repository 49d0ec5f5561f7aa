/** `trivet doctor` and `trivet config` only read a store: they create nothing and apply no migration. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { findFreePort } from '../../test/support/basics/free-port.ts';
import { runTrivet } from '../../test/support/programs/run-trivet.ts';
import {
  createStorePlace,
  engines,
  findReasonToSkip,
  openTestStore,
  type StorePlace,
} from '../../test/support/store/engines.ts';
import { createTestDatabase, startPostgresCluster } from '../../test/support/store/postgres-cluster.ts';
import { auditStatement } from '../authorization/accounts/audit-store.ts';
import { migrations } from '../database/migrations/list.ts';
import { statement } from '../database/store.ts';
import type { Check } from './doctor/check.ts';

const SHIFT = new URL('../../test/support/basics/shifted-clock.ts', import.meta.url).href;

const appliedSql = statement<{ id: number }>(
  'test-applied-migrations',
  'SELECT id FROM schema_migrations UNION SELECT id FROM schema_expansions ORDER BY id',
);

async function readEnvironment({ dataDir, databaseUrl }: StorePlace): Promise<Record<string, string>> {
  const ports = { HTTP_PORT: String(await findFreePort()), GRPC_PORT: String(await findFreePort()) };
  return { TRIVET_DATA_DIR: dataDir, ...ports, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }) };
}

async function findStoreCheck(env: Record<string, string>, wanted = 'store'): Promise<Check | undefined> {
  const { stdout } = await runTrivet(['doctor', '--json'], { env });
  const checks = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Check);
  return checks.find(({ name }) => name === wanted);
}

for (const engine of engines)
  test(`doctor names missing migrations and applies none (${engine})`, { skip: findReasonToSkip(engine) }, async () => {
    const place = await createStorePlace(engine);
    const env = await readEnvironment(place);
    assert.match((await findStoreCheck(env))?.found ?? '', /has none yet/);
    assert.deepEqual(readdirSync(place.dataDir), []);

    const last = migrations.at(-1)!;
    const known = migrations.slice(0, -1);
    const list = async (some = known) => {
      await using store = await openTestStore(place, { migrations: some });
      return (await store.read(appliedSql)).map(({ id }) => id);
    };
    const before = await list();
    const older = await findStoreCheck(env);
    assert.equal(older?.state, 'warn');
    assert.match(
      older?.found ?? '',
      new RegExp(`1 of ${migrations.length} migrations are missing: ${last.id}-${last.name}$`),
    );
    await runTrivet(['config', '--json'], { env });
    assert.deepEqual(await list(), before);
    assert.ok(!existsSync(join(place.dataDir, 'keys')));

    const future = { id: 900_000, name: 'future', statements: ['CREATE TABLE future (id {INT} NOT NULL PRIMARY KEY)'] };
    await list([...migrations, future]);
    const newer = await findStoreCheck(env);
    assert.equal(newer?.state, 'fail');
    assert.match(newer?.found ?? '', /newer than this program, which does not know the migration "900000-future"/);
    rmSync(place.dataDir, { recursive: true, force: true });
  });

for (const engine of engines)
  test(`doctor judges the clock that writes to the store (${engine})`, { skip: findReasonToSkip(engine) }, async () => {
    const place = await createStorePlace(engine);
    const env = await readEnvironment(place);
    const made = await runTrivet(['user', 'create', '--login', 'ada', '--name', 'Ada'], { env });
    assert.equal(made.code, 0, made.stderr);
    assert.equal((await findStoreCheck(env, 'clock'))?.state, 'ok');
    const behind = { NODE_OPTIONS: `--import ${SHIFT}`, TEST_CLOCK_AHEAD_MS: '-60000' };
    const check = await findStoreCheck({ ...env, ...behind }, 'clock');
    assert.equal(check?.state, engine === 'postgres' ? 'ok' : 'fail', check?.found);
    rmSync(place.dataDir, { recursive: true, force: true });
  });

test('doctor finds a PostgreSQL whose clock is behind its records', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const place = await createStorePlace('postgres');
  {
    await using store = await openTestStore(place, { migrations });
    await store.writeAll([auditStatement({ kind: 'user_created' }, Date.now() + 60_000)]);
  }
  const check = await findStoreCheck(await readEnvironment(place), 'clock');
  assert.equal(check?.state, 'fail');
  assert.match(check.advice ?? '', /^Set the clock of the database server/);
});

test('doctor finds a PostgreSQL that takes no writes', { skip: findReasonToSkip('postgres') }, async () => {
  const cluster = await startPostgresCluster();
  try {
    const databaseUrl = await createTestDatabase(cluster.socketDir, 'read_only');
    await (await openTestStore({ dataDir: '', databaseUrl }, { migrations }))[Symbol.asyncDispose]();
    const env = await readEnvironment({ dataDir: '', databaseUrl });
    const examine = () => findStoreCheck(env, 'writes');
    assert.equal(await examine(), undefined);

    const admin = new pg.Client(databaseUrl);
    await admin.connect();
    await admin.query('ALTER ROLE postgres SET default_transaction_read_only = on');
    await admin.end();
    const readOnly = await examine();
    assert.equal(readOnly?.state, 'fail');
    assert.match(readOnly.found, /takes no writes: default_transaction_read_only is on$/);

    await cluster.kill();
    const standbySignal = join(cluster.socketDir, 'data', 'standby.signal');
    writeFileSync(standbySignal, '');
    chmodSync(standbySignal, 0o666);
    await cluster.start();
    assert.match((await examine())?.found ?? '', /takes no writes: it is a standby$/);
  } finally {
    await cluster.stop();
  }
});

test('doctor and config make no folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-looking-'));
  const env = await readEnvironment({ dataDir: join(folder, 'data'), databaseUrl: undefined });
  for (const command of ['doctor', 'config']) assert.equal((await runTrivet([command], { env })).code, 0);
  assert.deepEqual(readdirSync(folder), []);
  rmSync(folder, { recursive: true });
});
