import assert from 'node:assert/strict';
import { chmodSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createStorePlace, openTestStore } from '../../../test/support/store/engines.ts';
import {
  insertAndAnswerFunction,
  insertAndExit,
  insertFullNoteSql,
  insertNoteSql,
  insertPair,
  listNotesSql,
  noteMigration,
} from '../../../test/support/store/note-store.ts';
import { createLog } from '../../telemetry/log.ts';
import { migrations } from '../migrations/list.ts';
import { databaseFileOf } from '../startup/open-store.ts';
import { procedure, type Store, statement } from '../store.ts';
import { openSqliteConnection } from './sqlite-connection.ts';
import { createSqliteWriter, type SqliteWriter, type SqliteWriterOptions } from './sqlite-writer.ts';

type Limits = Pick<SqliteWriterOptions, 'maxWaiting' | 'maxWaitingBytes'>;

function testWriter(title: string, run: (writer: SqliteWriter, store: Store) => Promise<void>, limits: Limits = {}) {
  test(title, async () => {
    const place = await createStorePlace('sqlite');
    await using store = await openTestStore(place, { migrations: [...migrations, noteMigration] });
    const writer = createSqliteWriter({ path: databaseFileOf(place.dataDir), log: createLog('silent'), ...limits });
    await run(writer, store);
    await writer.close();
    rmSync(place.dataDir, { recursive: true });
  });
}

function insert(writer: SqliteWriter, id: string) {
  return writer.writeAll([{ statement: insertNoteSql, parameters: [id, 1] }]);
}

async function listIds(store: Store): Promise<string[]> {
  return (await store.read(listNotesSql)).map((row) => row.id);
}

const TOO_MANY = { code: 'unavailable', message: 'Cannot write: too many writes are waiting' };

testWriter(
  'a write beyond the limit is refused at once, and taken again when there is room',
  async (writer, store) => {
    const writes = ['a', 'b', 'c'].map((id) => insert(writer, id));
    await assert.rejects(insert(writer, 'd'), TOO_MANY);
    await assert.rejects(writer.call(insertPair, 'e'), TOO_MANY);
    await Promise.all(writes);
    await insert(writer, 'f');
    assert.deepEqual(await listIds(store), ['a', 'b', 'c', 'f']);
  },
  { maxWaiting: 3 },
);

testWriter(
  'what waits is limited in bytes too, but a single large write passes',
  async (writer) => {
    const body = new Uint8Array(3_000);
    const insertLarge = (id: string) =>
      writer.writeAll([{ statement: insertFullNoteSql, parameters: [id, 1, null, body, null] }]);
    const first = insertLarge('a');
    await assert.rejects(insertLarge('b'), TOO_MANY);
    await first;
    await insertLarge('c');
  },
  { maxWaitingBytes: 2_000 },
);

testWriter(
  'when the thread ends its callers get an error, and the next write starts another',
  async (writer, store) => {
    const outcomes = await Promise.allSettled([
      insert(writer, 'a'),
      writer.call(insertAndExit, 'b'),
      insert(writer, 'c'),
    ]);
    for (const outcome of outcomes) {
      assert.equal(outcome.status, 'rejected');
      assert.equal((outcome.reason as { code: string }).code, 'unavailable');
    }
    await insert(writer, 'd');
    await writer.call(insertPair, 'e');
    assert.deepEqual(await listIds(store), ['d', 'e-a', 'e-b']);
  },
);

testWriter(
  'a write that no caller awaits is stored and answered before the writer is closed',
  async (writer, store) => {
    const writes = Array.from({ length: 5_000 }, (_, index) => insert(writer, `n${index}`));
    const outcomes = Promise.allSettled(writes);
    await writer.close();
    assert.ok((await outcomes).every((outcome) => outcome.status === 'fulfilled'));
    assert.equal((await listIds(store)).length, 5_000);
    await assert.rejects(insert(writer, 'late'), { code: 'unavailable' });
  },
);

testWriter('an input that cannot be cloned fails alone', async (writer, store) => {
  const [before, refused, after] = await Promise.allSettled([
    insert(writer, 'before'),
    writer.call(insertPair, (() => {}) as never),
    insert(writer, 'after'),
  ]);
  assert.deepEqual([before?.status, refused?.status, after?.status], ['fulfilled', 'rejected', 'fulfilled']);
  assert.deepEqual(await listIds(store), ['after', 'before']);
});

testWriter('a result that cannot be cloned fails alone', async (writer) => {
  const [refused, after] = await Promise.allSettled([
    writer.call(insertAndAnswerFunction, 'a'),
    insert(writer, 'after'),
  ]);
  assert.deepEqual([refused?.status, after?.status], ['rejected', 'fulfilled']);
});

testWriter('a procedure that its module does not export is refused', async (writer) => {
  const unknown = procedure(new URL('../leases.ts', import.meta.url).href, 'nothing', async () => {});
  await assert.rejects(writer.call(unknown, undefined), { code: 'internal', message: /does not export it/ });
  const nowhere = procedure('file:///nowhere.ts', 'nothing', async () => {});
  await assert.rejects(writer.call(nowhere, undefined), { code: 'internal', message: /cannot be loaded/ });
});

testWriter(
  'when the disk is full its callers get an error, and writing continues once there is room',
  async (writer, store) => {
    const limitPages = (pages: number) =>
      writer.writeAll([
        { statement: statement(`test_limit_${pages}`, `PRAGMA max_page_count = ${pages}`), parameters: [] },
      ]);
    const insertLarge = (id: string) =>
      writer.writeAll([{ statement: insertFullNoteSql, parameters: [id, 1, null, new Uint8Array(5_000_000), null] }]);
    await limitPages(1);
    const outcomes = await Promise.allSettled([insert(writer, 'beside'), insertLarge('large'), insertLarge('larger')]);
    assert.deepEqual(
      outcomes.slice(1).map((outcome) => outcome.status === 'rejected' && (outcome.reason as { code: string }).code),
      ['unavailable', 'unavailable'],
    );
    await limitPages(1_000_000);
    await insertLarge('large');
    const expected = outcomes[0]?.status === 'fulfilled' ? ['beside', 'large'] : ['large'];
    assert.deepEqual(await listIds(store), expected);
  },
);

test('a write waits while another process has the write lock', async () => {
  const place = await createStorePlace('sqlite');
  await using store = await openTestStore(place, { migrations: [...migrations, noteMigration] });
  using other = new DatabaseSync(databaseFileOf(place.dataDir));
  other.exec('BEGIN IMMEDIATE');
  let isDone = false;
  const write = store.write(insertNoteSql, ['a', 1]).then(() => {
    isDone = true;
  });
  // No event shows that it waits.
  await sleep(100);
  assert.equal(isDone, false);
  other.exec('COMMIT');
  await write;
  rmSync(place.dataDir, { recursive: true });
});

test('every commit is flushed to the disk before it is acknowledged', async () => {
  const place = await createStorePlace('sqlite');
  const connection = openSqliteConnection(databaseFileOf(place.dataDir), 'write');
  const FULL = 2;
  assert.deepEqual(connection.run({ name: 'synchronous', text: 'PRAGMA synchronous' }, []), [{ synchronous: FULL }]);
  assert.deepEqual(connection.run({ name: 'journal', text: 'PRAGMA journal_mode' }, []), [{ journal_mode: 'wal' }]);
  connection.close();
  rmSync(place.dataDir, { recursive: true });
});

test('the database and its log are readable by their owner alone, also in a folder that is not', async () => {
  const place = await createStorePlace('sqlite');
  chmodSync(place.dataDir, 0o755);
  await using store = await openTestStore(place, { migrations: [...migrations, noteMigration] });
  await store.write(insertNoteSql, ['a', 1]);
  const files = readdirSync(place.dataDir).filter((name) => name.startsWith('trivet.db'));
  assert.equal(files.length, 3);
  for (const name of files) assert.equal(statSync(join(place.dataDir, name)).mode & 0o077, 0, name);
  rmSync(place.dataDir, { recursive: true });
});

test('every table is STRICT', async () => {
  const place = await createStorePlace('sqlite');
  await using store = await openTestStore(place);
  const looseSql = statement(
    'test-loose-tables',
    `SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict = 0 AND name NOT LIKE 'sqlite_%'`,
  );
  assert.deepEqual(await store.read(looseSql), []);
  rmSync(place.dataDir, { recursive: true });
});
