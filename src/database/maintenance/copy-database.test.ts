import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import {
  createStorePlace,
  findReasonToSkip,
  forEachEngine,
  openTestStore,
  type StorePlace,
  type TestEngine,
} from '../../../test/support/store/engines.ts';
import {
  findNoteSql,
  insertFullNoteSql,
  insertNoteSql,
  listNotesSql,
  noteMigration,
} from '../../../test/support/store/note-store.ts';
import { createLog } from '../../telemetry/log.ts';
import { acquireLease } from '../leases.ts';
import { migrations } from '../migrations/list.ts';
import { databaseFileOf } from '../startup/open-store.ts';
import type { Migration, Store } from '../store.ts';
import { copyDatabase } from './copy-database.ts';
import { describeSchema } from './schema.ts';
import { openPostgresTables, openSqliteTables, type TableConnection } from './table-connection.ts';

const all = [...migrations, noteMigration];
const lease = { name: 'trainer', owner: 'one', nowMs: 0, durationMs: 10 };

async function openPlace(engine: TestEngine): Promise<{ place: StorePlace; store: Store }> {
  const place = await createStorePlace(engine);
  return { place, store: await openTestStore(place, { migrations: all }) };
}

async function openLink(place: StorePlace, access: 'read' | 'write'): Promise<TableConnection> {
  return place.databaseUrl === undefined
    ? openSqliteTables(databaseFileOf(place.dataDir), access)
    : await openPostgresTables(place.databaseUrl, createLog('silent'));
}

async function copy(from: StorePlace, to: StorePlace) {
  await using source = await openLink(from, 'read');
  await using target = await openLink(to, 'write');
  return await copyDatabase({ source, target, migrations: all, report: () => {} });
}

async function fill(store: Store): Promise<void> {
  const body = Uint8Array.of(0, 92, 255);
  await store.write(insertFullNoteSql, ["o'\\x00 🧊\n", 2 ** 53 - 1, -0.1, body, null]);
  await store.writeAll(
    Array.from({ length: 1_234 }, (_, index) => ({ statement: insertNoteSql, parameters: [`n${index}`, index] })),
  );
  assert.ok(await acquireLease(store, lease));
  assert.ok(await acquireLease(store, { ...lease, nowMs: 20 }));
}

const directions: [TestEngine, TestEngine][] = [
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
  ['sqlite', 'sqlite'],
];

for (const [from, to] of directions) {
  const skip = findReasonToSkip('postgres');

  test(`copyDatabase() moves every row of every table as it is (${from} to ${to})`, { skip }, async () => {
    const [one, other] = [await openPlace(from), await openPlace(to)];
    await using source = one.store;
    await using target = other.store;
    await fill(source);
    const copied = await copy(one.place, other.place);
    assert.equal(copied.find(({ table }) => table === 'note')?.rows, 1_235);
    assert.deepEqual(await target.read(listNotesSql), await source.read(listNotesSql));
    assert.deepEqual(
      await target.read(findNoteSql, ["o'\\x00 🧊\n"]),
      await source.read(findNoteSql, ["o'\\x00 🧊\n"]),
    );
    assert.equal((await acquireLease(target, { ...lease, nowMs: 100 }))?.epoch, 3, 'the epoch goes on counting');
    for (const { place } of [one, other]) rmSync(place.dataDir, { recursive: true });
  });

  test(`copyDatabase() refuses a target with rows and leaves it as it is (${from} to ${to})`, { skip }, async () => {
    const [one, other] = [await openPlace(from), await openPlace(to)];
    await using source = one.store;
    await using target = other.store;
    await fill(source);
    await target.write(insertNoteSql, ['mine', 1]);
    await assert.rejects(copy(one.place, other.place), {
      code: 'conflict',
      message: 'Cannot copy: the target must be unused, and its table "note" has 1 rows',
    });
    assert.deepEqual(await target.read(listNotesSql), [{ id: 'mine', number: 1 }]);
    for (const { place } of [one, other]) rmSync(place.dataDir, { recursive: true });
  });
}

forEachEngine(
  'copyDatabase() refuses a source with an expansion of a newer release, and names it',
  async (_, { place }) => {
    const other = await createStorePlace('sqlite');
    await using _target = await openTestStore(other, { migrations: all });
    const added: Migration = {
      id: 9_999,
      name: 'added-later',
      isExpansion: true,
      statements: ['CREATE TABLE later (id {INT} NOT NULL PRIMARY KEY)'],
    };
    await using _newer = await openTestStore(place, { migrations: [...all, added] });
    await assert.rejects(copy(place, other), {
      code: 'conflict',
      message:
        /^Cannot copy: the source is newer .* "9999-added-later" of its migrations and would leave out what they added/,
    });
    rmSync(other.dataDir, { recursive: true });
  },
  { migrations: all },
);

test('openPostgresTables() lifts the timeouts for its transaction alone', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const { place, store } = await openPlace('postgres');
  await using _store = store;
  await using tables = await openLink(place, 'read');
  const countLifted = (name: string) =>
    tables.countRows(`(SELECT 1 WHERE current_setting('${name}') IN ('0', '0ms')) AS lifted`);
  const names = ['statement_timeout', 'idle_in_transaction_session_timeout'];
  for (const name of names) assert.equal(await countLifted(name), 1, name);
  await tables.commit();
  for (const name of names) assert.equal(await countLifted(name), 0, name);
  rmSync(place.dataDir, { recursive: true });
});

test('describeSchema() lists a table after those that it refers to, whatever their names', () => {
  const family: Migration = {
    id: 1,
    name: 'family',
    statements: [
      'CREATE TABLE zebra (id {INT} NOT NULL PRIMARY KEY)',
      'CREATE TABLE apple (id {INT} NOT NULL PRIMARY KEY, zebra_id {INT} REFERENCES zebra (id))',
      'ALTER TABLE zebra ADD COLUMN stripes {INT}',
      'INSERT INTO zebra (id) VALUES (1)',
    ],
  };
  const tables = describeSchema([family]).filter(({ name }) => ['apple', 'zebra'].includes(name));
  assert.deepEqual(tables, [
    { name: 'zebra', columns: ['id', 'stripes'], seedRows: 1 },
    { name: 'apple', columns: ['id', 'zebra_id'], seedRows: 0 },
  ]);
});
