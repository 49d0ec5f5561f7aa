import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createStorePlace, forEachEngine, openTestStore } from '../../../test/support/store/engines.ts';
import {
  hasCode,
  insertAndBreak,
  insertAndForgive,
  insertAndRefuse,
  insertAndWait,
  insertNoteSql,
  insertWithinLimit,
  listIds,
  noteMigration,
  takeNoteOnce,
} from '../../../test/support/store/note-store.ts';
import { migrations } from '../migrations/list.ts';

const options = { migrations: [...migrations, noteMigration] };

forEachEngine(
  'procedures decide as if they ran one after the other',
  async (store, { openAnother }) => {
    const other = await openAnother();
    const calls = Array.from({ length: 24 }, (_, index) =>
      (index % 2 ? store : other).call(insertWithinLimit, { id: `n${index}`, limit: 5 }),
    );
    const inserted = (await Promise.all(calls)).filter((result) => result.isInserted);
    assert.equal(inserted.length, 5);
    assert.equal((await listIds(store)).length, 5);
  },
  options,
);

forEachEngine(
  'many procedures that conflict all come to an end',
  async (store, { openAnother }) => {
    const other = await openAnother();
    const calls = Array.from({ length: 128 }, (_, index) =>
      (index % 2 ? store : other).call(insertWithinLimit, { id: `n${index}`, limit: 100 }),
    );
    const inserted = (await Promise.all(calls)).filter((result) => result.isInserted);
    assert.equal(inserted.length, 100);
  },
  { ...options, poolSize: 10 },
);

forEachEngine(
  'procedures that decide by conditional statements queue for a row instead of conflicting',
  async (store, { openAnother }) => {
    const other = await openAnother();
    await store.write(insertNoteSql, ['tickets', 100]);
    const calls = Array.from({ length: 128 }, (_, index) =>
      (index % 2 ? store : other).call(takeNoteOnce, { id: 'tickets', receipt: `r${index}` }),
    );
    const taken = (await Promise.all(calls)).filter(Boolean);
    assert.equal(taken.length, 100);
    const receipts = (await listIds(store)).filter((id) => id.startsWith('r'));
    assert.equal(receipts.length, 100);
  },
  { ...options, poolSize: 10 },
);

forEachEngine(
  'what a procedure throws arrives, and nothing of it is stored',
  async (store) => {
    await assert.rejects(store.call(insertAndRefuse, 'one'), {
      name: 'Failure',
      code: 'forbidden',
      message: 'Cannot insert: not today',
      details: { field: 'id' },
    });
    await assert.rejects(store.call(insertAndBreak, 'one'), { name: 'TypeError', message: 'broken' });
    assert.deepEqual(await listIds(store), []);
  },
  options,
);

forEachEngine(
  'a procedure cannot go on after a statement that failed',
  async (store) => {
    await store.write(insertNoteSql, ['one', 1]);
    await assert.rejects(store.call(insertAndForgive, 'one'), hasCode('conflict'));
    assert.deepEqual(await listIds(store), ['one']);
  },
  options,
);

test('a procedure that waits for anything but its statements is refused, since it would hold everyone up', async () => {
  const place = await createStorePlace('sqlite');
  await using store = await openTestStore(place, options);
  await assert.rejects(store.call(insertAndWait, 'slow'), hasCode('internal'));
  await store.write(insertNoteSql, ['next', 1]);
  // Longer than the procedure would have waited: no event shows that nothing follows.
  await sleep(100);
  assert.deepEqual(await listIds(store), ['next']);
});
