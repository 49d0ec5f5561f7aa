import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { findReasonToSkip, openTestStore } from '../../../test/support/store/engines.ts';
import {
  findNoteSql,
  insertNoteSql,
  insertPair,
  listNotesSql,
  noteMigration,
} from '../../../test/support/store/note-store.ts';
import {
  createTestDatabase,
  type PostgresCluster,
  startPostgresCluster,
} from '../../../test/support/store/postgres-cluster.ts';
import type { Failure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { migrations } from '../migrations/list.ts';
import type { Store } from '../store.ts';
import { openPostgresEngine } from './postgres-engine.ts';

const skip = findReasonToSkip('postgres');
const options = { migrations: [...migrations, noteMigration] };

// A separate server: this test ends connections, which must not be those of other tests.
let cluster: PostgresCluster;
let databaseUrl = '';
let store: Store;
let admin: pg.Client;

before(async () => {
  if (skip) return;
  cluster = await startPostgresCluster();
  databaseUrl = await createTestDatabase(cluster.socketDir, 'engine');
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

async function endOtherConnections(): Promise<void> {
  await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'trivet' AND pid <> pg_backend_pid() AND datname = current_database()`);
}

test('reads and writes go on after the server has ended every connection', { skip }, async () => {
  await store.write(insertNoteSql, ['before', 1]);
  await endOtherConnections();
  const results = await Promise.all([
    store.read(findNoteSql, ['before']),
    store.read(findNoteSql, ['before']),
    store.read(findNoteSql, ['before']),
  ]);
  assert.deepEqual(
    results.map((rows) => rows.length),
    [1, 1, 1],
  );
  await store.write(insertNoteSql, ['after', 1]);
});

test('a lost idle connection is logged in one short line, without the state of the driver', { skip }, async () => {
  const lines: string[] = [];
  const log = createLog('warn', { write: (line) => lines.push(line) });
  await using logged = await openTestStore({ dataDir: '', databaseUrl }, { ...options, log });
  await logged.read(findNoteSql, ['before']);
  await endOtherConnections();
  const findLine = () => lines.find((line) => line.includes('A connection to PostgreSQL was lost'));
  await waitUntil(() => findLine() !== undefined);
  const { reason } = JSON.parse(findLine()!) as { readonly reason: string };
  assert.match(reason, /terminating connection due to administrator command/);
  assert.ok(findLine()!.length < 300, findLine());
});

test('a connection that is lost in a transaction fails the caller alone', { skip }, async () => {
  const calls = Promise.allSettled(Array.from({ length: 40 }, (_, index) => store.call(insertPair, `pair-${index}`)));
  await endOtherConnections();
  const outcomes = await calls;
  // A transaction that is lost before its commit was sent is retried; its outcome is unknown only during the commit.
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') assert.equal((outcome.reason as Failure).details.isUnknown, true);
  const ids = (await store.read(listNotesSql)).map((row) => row.id);
  for (const [index, outcome] of outcomes.entries())
    if (outcome.status === 'fulfilled') assert.ok(ids.includes(`pair-${index}-a`) && ids.includes(`pair-${index}-b`));
});

test('what is written in one trip commits together or not at all', { skip }, async () => {
  const insert = (id: string) => ({ statement: insertNoteSql, parameters: [id, 1] });
  const write = (...ids: string[]) => store.writeAll(ids.map(insert), { inOneTrip: true });
  assert.deepEqual(await write('trip-1', 'trip-2'), [[{ id: 'trip-1' }], [{ id: 'trip-2' }]]);
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => write(`trip-${index + 3}`, 'trip-1', `trip-${index + 100}`)),
  );
  for (const outcome of outcomes)
    assert.equal(outcome.status === 'rejected' && outcome.reason.details.isDuplicate, true);
  // The connections can be used again, and nothing is left open on them.
  await Promise.all(Array.from({ length: 20 }, (_, index) => write(`trip-${index + 200}`, `trip-${index + 300}`)));
  const trips = (await store.read(listNotesSql)).filter(({ id }) => id.startsWith('trip-'));
  assert.equal(trips.length, 42);
  assert.ok(trips.every(({ id }) => /^trip-([12]|[23]\d\d)$/.test(id)));
});

test('a connection that is lost while something is written in one trip leaves the outcome unknown', {
  skip,
}, async () => {
  const insert = (id: string) => ({ statement: insertNoteSql, parameters: [id, 1] });
  const writes = Promise.allSettled(
    Array.from({ length: 40 }, (_, index) =>
      store.writeAll([insert(`lost-${index}-a`), insert(`lost-${index}-b`)], { inOneTrip: true }),
    ),
  );
  await endOtherConnections();
  const outcomes = await writes;
  const ids = (await store.read(listNotesSql)).map((row) => row.id);
  for (const [index, outcome] of outcomes.entries()) {
    const stored = ['a', 'b'].filter((part) => ids.includes(`lost-${index}-${part}`)).length;
    if (outcome.status === 'fulfilled') assert.equal(stored, 2);
    else assert.deepEqual([(outcome.reason as Failure).details.isUnknown, stored % 2], [true, 0]);
  }
});

test('a call beyond the limit of those that wait is refused at once', { skip }, async () => {
  const engine = openPostgresEngine({
    databaseUrl,
    poolSize: 1,
    log: createLog('silent'),
    world: realWorld,
    maxWaiting: 2,
  });
  const calls = [0, 1, 2, 3].map(() => engine.read(findNoteSql, ['before']));
  const outcomes = await Promise.allSettled(calls);
  assert.deepEqual(
    outcomes.map((outcome) => outcome.status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'rejected'],
  );
  await engine.close();
});

test('a question for the clock of a server that does not answer ends, and leaves its place in the pool', {
  skip,
}, async () => {
  await using undo = new AsyncDisposableStack();
  const engine = openPostgresEngine({ databaseUrl, poolSize: 1, log: createLog('silent'), world: realWorld });
  undo.defer(() => engine.close());
  await engine.clock.measure();
  cluster.freeze();
  undo.defer(() => cluster.thaw());
  await assert.rejects(engine.clock.measure(), { code: 'unavailable' });
  assert.equal(engine.pool.totalCount, 0);
  await assert.rejects(engine.clock.measure(), { code: 'unavailable' });
  cluster.thaw();
  const isMeasured = () =>
    engine.clock.measure().then(
      () => true,
      () => false,
    );
  await waitUntil(isMeasured);
  assert.equal((await engine.read(listNotesSql, [])).length >= 0, true);
});

test('a server that cannot be reached is named as the reason', async () => {
  const place = { dataDir: '', databaseUrl: 'postgres://someone:geheim@127.0.0.1:1/nothing' };
  await assert.rejects(openTestStore(place, options), (error: Failure) => {
    assert.equal(error.code, 'unavailable');
    assert.match(error.message, /^Cannot open the database: .*ECONNREFUSED/);
    assert.doesNotMatch(error.message, /geheim/);
    return true;
  });
});

test('a database that does not speak UTF8 is refused', { skip }, async () => {
  const name = `latin_${realWorld.uuid().replaceAll('-', '')}`;
  await admin.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0`);
  const place = { dataDir: '', databaseUrl: databaseUrl.replace('/postgres?', `/${name}?`) };
  await assert.rejects(openTestStore(place, options), {
    code: 'invalid',
    message: 'Cannot open the database: its encoding must be UTF8, got "LATIN1"',
  });
});

test('a server that acknowledges before the write is on the disk is warned of', { skip }, async () => {
  const lines: string[] = [];
  const log = createLog('warn', { write: (line) => lines.push(line) });
  const place = {
    dataDir: '',
    databaseUrl: databaseUrl.replace('search_path', 'synchronous_commit%3Doff%20-c%20search_path'),
  };
  await using _store = await openTestStore(place, { ...options, log });
  assert.match(lines.join(), /"synchronous_commit":"off".*acknowledges writes before they are on the disk/);
});
