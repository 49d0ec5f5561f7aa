import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { createStorePlace, forEachEngine } from '../../../test/support/store/engines.ts';
import { findNoteSql, insertFullNoteSql, noteMigration } from '../../../test/support/store/note-store.ts';
import { migrations } from '../migrations/list.ts';
import { type SqlValue, statement } from '../store.ts';
import { createReadCache, type ReadCache } from './read-cache.ts';
import { openSqliteConnection, type SqliteConnection } from './sqlite-connection.ts';

forEachEngine(
  'readCached() sees what this process and another one wrote, on the very next call',
  async (store, { openAnother }) => {
    const another = await openAnother();
    const readNumber = async () => (await store.readCached(findNoteSql, ['a']))[0]?.number;
    assert.equal(await readNumber(), undefined);
    const setNumberSql = statement('test-cached-set', 'UPDATE note SET number = $1 WHERE id = $2');
    await store.write(insertFullNoteSql, ['a', 1, 0.5, null, null]);
    assert.equal(await readNumber(), 1);
    for (let round = 2; round < 40; round += 2) {
      await another.write(setNumberSql, [round, 'a']);
      assert.equal(await readNumber(), round);
      await store.write(setNumberSql, [round + 1, 'a']);
      assert.equal(await readNumber(), round + 1);
    }
  },
  { migrations: [...migrations, noteMigration] },
);

const echoSql = statement('test-cached-echo', 'SELECT $1 AS one, $2 AS two');

interface Counted {
  /** How many statements were run. */
  readonly count: () => number;
  /** How often the data version was read. */
  readonly countQuestions: () => number;
  readonly commit: () => Promise<void>;
}

async function withCache(
  maxAnswers: number,
  run: (cache: ReadCache, counted: Counted) => Promise<void>,
): Promise<void> {
  const { dataDir } = await createStorePlace('sqlite');
  const path = `${dataDir}/memory.db`;
  const [writer, reader] = [openSqliteConnection(path, 'write'), openSqliteConnection(path, 'read')];
  let reads = 0;
  let questions = 0;
  const counted: SqliteConnection = {
    ...reader,
    run: (...parameters) => {
      reads += 1;
      return reader.run(...parameters);
    },
    dataVersion: () => {
      questions += 1;
      return reader.dataVersion();
    },
  };
  try {
    const commit = async () => {
      writer.execute('CREATE TABLE IF NOT EXISTS t (a); INSERT INTO t VALUES (1)');
      // A caller learns of a commit from outside, and so in a later turn.
      await new Promise(setImmediate);
    };
    await run(createReadCache(counted, maxAnswers), { count: () => reads, countQuestions: () => questions, commit });
  } finally {
    reader.close();
    writer.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

test('a statement is read once with the same parameters, and again after a commit', async () => {
  await withCache(10, async (cache, { count, commit }) => {
    for (let round = 0; round < 3; round += 1) cache.readCached(echoSql, ['a', 1]);
    assert.equal(count(), 1);
    await commit();
    for (let round = 0; round < 3; round += 1) cache.readCached(echoSql, ['a', 1]);
    assert.equal(count(), 2);
  });
});

test('the look-ups of one turn ask once whether anybody committed, and those of the next turn ask again', async () => {
  await withCache(10, async (cache, { countQuestions, commit }) => {
    for (let turn = 1; turn < 5; turn += 1) {
      const lookUps = async () => {
        for (let lookUp = 0; lookUp < 3; lookUp += 1) {
          cache.readCached(echoSql, ['a', lookUp]);
          await Promise.resolve();
        }
      };
      // From the start of a turn: ticks run before the promises that continue after the first look-up.
      await new Promise<void>((resolve) => setImmediate(() => void lookUps().then(resolve)));
      assert.equal(countQuestions(), turn);
      await commit();
    }
  });
});

test('the cache is bounded', async () => {
  await withCache(3, async (cache, { count }) => {
    for (const id of [1, 2, 3, 4]) cache.readCached(echoSql, ['a', id]);
    cache.readCached(echoSql, ['a', 4]);
    assert.equal(count(), 4, 'the newest is remembered');
    cache.readCached(echoSql, ['a', 1]);
    assert.equal(count(), 5, 'the oldest is not');
  });
});

test('an answer to a long parameter is not kept, and right all the same', async () => {
  await withCache(10, async (cache, { count }) => {
    const long = 'x'.repeat(1000);
    for (let round = 1; round < 3; round += 1) {
      assert.equal(cache.readCached(echoSql, [long, round])[0]?.one, long);
      assert.equal(cache.readCached(echoSql, [long, 1])[0]?.two, 1);
      assert.equal(count(), 2 * round);
    }
  });
});

test('parameters that look alike are not mixed up', async () => {
  await withCache(100, async (cache) => {
    const alike: [SqlValue, SqlValue][] = [
      ['1', '2'],
      [1, '2'],
      ['1', 2],
      [null, 'null'],
      ['null', null],
      [Uint8Array.of(97, 0, 115, 98), 'c'],
      [Uint8Array.of(97), 'b'],
      ['a', 'b'],
      ['', Uint8Array.of()],
      [Uint8Array.of(), ''],
    ];
    for (const [one, two] of [...alike, ...alike]) {
      const [row] = cache.readCached(echoSql, [one, two]);
      assert.deepEqual([row?.one, row?.two], [one, two]);
    }
  });
});
