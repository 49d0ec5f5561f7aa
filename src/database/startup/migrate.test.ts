import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { insertNoteSql, listNotesSql, noteMigration } from '../../../test/support/store/note-store.ts';
import type { Failure } from '../../errors.ts';
import { migrations } from '../migrations/list.ts';
import type { Migration } from '../store.ts';

const known = [...migrations, noteMigration];
const later: Migration = {
  id: 2000,
  name: 'later',
  statements: ['ALTER TABLE note ADD COLUMN extra {TEXT}', 'CREATE INDEX note_extra ON note (extra)'],
};

forEachEngine(
  'stores that open at once on an empty database migrate it once',
  async (store, { openAnother }) => {
    const others = await Promise.all(Array.from({ length: 5 }, () => openAnother({ migrations: [...known, later] })));
    await Promise.all([store, ...others].map((each, index) => each.write(insertNoteSql, [`n${index}`, index])));
    assert.equal((await store.read(listNotesSql)).length, 6);
  },
  { migrations: known },
);

forEachEngine(
  'a database that is newer than the program is left alone',
  async (_, { openAnother }) => {
    await assert.rejects(openAnother({ migrations }), {
      code: 'conflict',
      message: /newer than this program, which does not know the migration "1000-note"/,
    });
  },
  { migrations: known },
);

const expansion: Migration = { ...later, isExpansion: true };

forEachEngine(
  'a program that does not know an expansion starts and writes beside it',
  async (_, { openAnother }) => {
    const newer = await openAnother({ migrations: [...known, expansion] });
    const older = await openAnother({ migrations: known });
    await Promise.all([older.write(insertNoteSql, ['older', 1]), newer.write(insertNoteSql, ['newer', 2])]);
    assert.equal((await newer.read(listNotesSql)).length, 2);
    // The newer one again: nothing is left to do.
    await openAnother({ migrations: [...known, expansion] });
  },
  { migrations: known },
);

forEachEngine(
  'an expansion that was changed after it ran is noticed',
  async (_, { openAnother }) => {
    await openAnother({ migrations: [...known, expansion] });
    const changed = { ...expansion, statements: ['ALTER TABLE note ADD COLUMN other {TEXT}'] };
    await assert.rejects(openAnother({ migrations: [...known, changed] }), { code: 'conflict' });
  },
  { migrations: known },
);

forEachEngine(
  'a migration that was changed after it ran is noticed',
  async (_, { openAnother }) => {
    const changed = { ...noteMigration, statements: ['CREATE TABLE note (id {TEXT} NOT NULL PRIMARY KEY)'] };
    await assert.rejects(openAnother({ migrations: [...migrations, changed] }), {
      code: 'conflict',
      message: /"1000-note" has changed since it ran there/,
    });
  },
  { migrations: known },
);

forEachEngine(
  'migrations of an empty database run in the order of the list, whatever their numbers',
  async (store) => {
    await store.write(insertNoteSql, ['first', 1]);
    assert.equal((await store.read(listNotesSql)).length, 1);
  },
  { migrations: [...known, { ...later, id: 2 }] },
);

forEachEngine(
  'a migration that fails leaves nothing behind and can be run again',
  async (_, { openAnother }) => {
    const broken = { ...later, statements: [later.statements[0]!, 'CREATE INDEX broken ON nothing (id)'] };
    await assert.rejects(openAnother({ migrations: [...known, broken] }), (error: Failure) =>
      error.message.startsWith('Cannot migrate the database: "2000-later" failed: '),
    );
    await openAnother({ migrations: [...known, later] });
  },
  { migrations: known },
);

forEachEngine(
  'a migration with a lower number than a completed migration still runs',
  async (_, { openAnother }) => {
    const between: Migration = {
      id: 500,
      name: 'between',
      statements: ['CREATE TABLE between_two (id {INT} NOT NULL)'],
    };
    await openAnother({ migrations: [...known, between] });
    await openAnother({ migrations: [...known, between] });
  },
  { migrations: known },
);
