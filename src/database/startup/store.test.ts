import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import {
  findNoteSql,
  hasCode,
  insertAndRefuse,
  insertFullNoteSql,
  insertNoteSql,
  listIds,
  listNotesSql,
  noteMigration,
  takeNoteSql,
} from '../../../test/support/store/note-store.ts';
import { migrations } from '../migrations/list.ts';
import { type Statement, statement } from '../store.ts';

const options = { migrations: [...migrations, noteMigration] };

forEachEngine(
  'what was written is read, in the same types',
  async (store) => {
    const body = Uint8Array.of(0, 1, 254, 255);
    await store.write(insertFullNoteSql, ['full', 2 ** 53 - 1, 0.1, body, null]);
    await store.write(insertFullNoteSql, ['Ünïcödé 🧊', -1, 1, null, 'full']);
    assert.deepEqual(await store.read(findNoteSql, ['full']), [{ id: 'full', number: 2 ** 53 - 1, ratio: 0.1, body }]);
    assert.deepEqual(await store.read(findNoteSql, ['Ünïcödé 🧊']), [
      { id: 'Ünïcödé 🧊', number: -1, ratio: 1, body: null },
    ]);
    assert.deepEqual(await store.read(findNoteSql, ['none']), []);
  },
  options,
);

forEachEngine(
  'counts, sums, averages and comparisons are numbers',
  async (store) => {
    await store.writeAll([3, 4].map((number) => ({ statement: insertNoteSql, parameters: [`n${number}`, number] })));
    const aggregateSql = statement(
      'test-aggregate',
      'SELECT COUNT(*) AS count, SUM(number) AS sum, AVG(number) AS mean, MAX(number) > 3 AS is_more FROM note',
    );
    assert.deepEqual(await store.read(aggregateSql), [{ count: 2, sum: 7, mean: 3.5, is_more: 1 }]);
  },
  options,
);

forEachEngine(
  'a whole number stays one inside a statement',
  async (store) => {
    const divideSql = statement<{ half: number; text: string }>(
      'test-divide',
      'SELECT CAST($1 AS BIGINT) / 2 AS half, CAST($1 AS TEXT) AS text',
    );
    assert.deepEqual(await store.read(divideSql, [7]), [{ half: 3, text: '7' }]);
  },
  options,
);

forEachEngine(
  'a number beyond 2^53 is refused, not rounded',
  async (store) => {
    const bigSql = statement('test-big', "SELECT CAST('9007199254740993' AS BIGINT) AS big");
    await assert.rejects(store.read(bigSql), hasCode('internal'));
  },
  options,
);

forEachEngine(
  'text is sorted by its bytes',
  async (store) => {
    const ids = ['a', 'B', 'ä', 'Z', '_', 'b'];
    await Promise.all(ids.map((id) => store.write(insertNoteSql, [id, 0])));
    assert.deepEqual(await listIds(store), ['B', 'Z', '_', 'a', 'b', 'ä']);
  },
  options,
);

forEachEngine(
  'a write answers with its rows',
  async (store) => {
    assert.deepEqual(await store.write(insertNoteSql, ['one', 1]), [{ id: 'one' }]);
    assert.deepEqual(
      await store.writeAll([
        { statement: insertNoteSql, parameters: ['two', 2] },
        { statement: takeNoteSql, parameters: ['none'] },
        { statement: takeNoteSql, parameters: ['two'] },
      ]),
      [[{ id: 'two' }], [], [{ id: 'two' }]],
    );
    assert.deepEqual(await store.writeAll([]), []);
  },
  options,
);

forEachEngine(
  'a transaction is stored as a whole or not at all, and those beside it are not touched',
  async (store) => {
    await store.write(insertNoteSql, ['taken', 1]);
    const outcomes = await Promise.allSettled([
      store.write(insertNoteSql, ['before', 1]),
      store.writeAll(['half', 'taken'].map((id) => ({ statement: insertNoteSql, parameters: [id, 1] }))),
      store.write(insertNoteSql, ['taken', 2]),
      store.writeAll(['one', 'two'].map((id) => ({ statement: insertNoteSql, parameters: [id, 1] }))),
      store.write(insertNoteSql, ['after', 1]),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      ['fulfilled', 'rejected', 'rejected', 'fulfilled', 'fulfilled'],
    );
    assert.deepEqual(await listIds(store), ['after', 'before', 'one', 'taken', 'two']);
  },
  options,
);

forEachEngine(
  'a row that exists already and a missing parent are conflicts',
  async (store) => {
    await store.write(insertNoteSql, ['one', 1]);
    await assert.rejects(store.write(insertNoteSql, ['one', 1]), hasCode('conflict'));
    await assert.rejects(store.write(insertFullNoteSql, ['two', 1, null, null, 'missing']), hasCode('conflict'));
  },
  options,
);

forEachEngine(
  'a conditional statement lets exactly as many through as it says',
  async (store, { openAnother }) => {
    const other = await openAnother();
    await store.write(insertNoteSql, ['tickets', 10]);
    const takers = Array.from({ length: 40 }, (_, index) =>
      (index % 2 ? store : other).write(takeNoteSql, ['tickets']),
    );
    const taken = (await Promise.all(takers)).filter((rows) => rows.length === 1);
    assert.equal(taken.length, 10);
  },
  options,
);

forEachEngine(
  'values that the engines would take differently are refused by both',
  async (store) => {
    await assert.rejects(store.write(insertNoteSql, ['a\0b', 1]), hasCode('invalid'));
    await assert.rejects(store.write(insertNoteSql, ['one', Number.NaN]), hasCode('internal'));
    await assert.rejects(store.write(insertNoteSql, ['one', undefined as never]), hasCode('internal'));
    await assert.rejects(store.write(insertNoteSql, ['one', true as never]), hasCode('internal'));
    await assert.rejects(store.write(insertNoteSql, ['one', 1.5]), hasCode('internal'));
    await assert.rejects(store.read(insertNoteSql, ['one', 1]), hasCode('internal'));
    assert.deepEqual(await listIds(store), []);
  },
  options,
);

forEachEngine(
  'a large value and a piece of a larger buffer arrive as they are',
  async (store) => {
    const large = new Uint8Array(3_000_000).fill(7);
    const piece = new Uint8Array(large.buffer, 10, 5);
    await store.writeAll([
      { statement: insertFullNoteSql, parameters: ['large', 1, null, large, null] },
      { statement: insertFullNoteSql, parameters: ['piece', 1, null, piece, null] },
    ]);
    assert.equal((await store.read(findNoteSql, ['large']))[0]?.body?.length, 3_000_000);
    assert.deepEqual((await store.read(findNoteSql, ['piece']))[0]?.body, new Uint8Array(5).fill(7));
  },
  options,
);

forEachEngine(
  'what waits is stored when the store is closed, and nothing is taken after',
  async (store, { openAnother }) => {
    const closing = await openAnother();
    const writes = Array.from({ length: 50 }, (_, index) => closing.write(insertNoteSql, [`n${index}`, index]));
    const stored = Promise.all(writes);
    await closing[Symbol.asyncDispose]();
    await stored;
    await closing[Symbol.asyncDispose]();
    assert.equal((await listIds(store)).length, 50);
    await assert.rejects(closing.write(insertNoteSql, ['late', 1]), hasCode('unavailable'));
    await assert.rejects(closing.read(listNotesSql), hasCode('unavailable'));
  },
  options,
);

forEachEngine(
  'a watcher is notified of a change made elsewhere, of its own topic only',
  async (store, { openAnother }) => {
    const other = await openAnother();
    const changed: string[] = [];
    const stop = store.watch('tokens', () => changed.push('tokens'));
    store.watch('models', () => changed.push('models'));
    await waitUntil(() => changed.length === 2);
    changed.length = 0;
    await other.writeAll([other.markChanged('tokens', 1), { statement: insertNoteSql, parameters: ['one', 1] }]);
    await waitUntil(() => changed.length > 0);
    await store.writeAll([store.markChanged('models', 2)]);
    await waitUntil(() => changed.length > 1);
    stop();
    await other.writeAll([other.markChanged('tokens', 3), other.markChanged('models', 3)]);
    await waitUntil(() => changed.length > 2);
    assert.deepEqual(changed, ['tokens', 'models', 'models']);
  },
  options,
);

const missingTableSql: Statement = statement('test-missing-table', 'DELETE FROM no_such_table');

forEachEngine(
  'writes are timed by how they ended, and nothing waits afterwards',
  async (_, { openAnother }) => {
    const metrics = new Registry();
    const store = await openAnother({ metrics });
    await store.write(insertNoteSql, ['one', 1]);
    await assert.rejects(store.call(insertAndRefuse, 'two'), hasCode('forbidden'));
    await assert.rejects(store.write(insertNoteSql, ['one', 2]), hasCode('conflict'));
    await assert.rejects(store.write(missingTableSql), hasCode('internal'));
    const text = await metrics.metrics();
    assert.match(text, /^trivet_database_write_duration_seconds_count\{outcome="stored"\} 1$/m);
    assert.match(text, /^trivet_database_write_duration_seconds_count\{outcome="refused"\} 2$/m);
    assert.match(text, /^trivet_database_write_duration_seconds_count\{outcome="failed"\} 1$/m);
    assert.match(text, /^trivet_database_waiting 0$/m);
  },
  options,
);

test('a statement name means one text', () => {
  const oneSql: Statement = statement('test-same', 'SELECT 1 AS one');
  assert.equal(statement('test-same', 'SELECT 1 AS one').text, oneSql.text);
  assert.throws(() => statement('test-same', 'SELECT 2 AS two'), hasCode('internal'));
  assert.throws(() => statement('x'.repeat(64), 'SELECT 1'), hasCode('internal'));
});
