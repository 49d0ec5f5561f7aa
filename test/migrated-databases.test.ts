/** The databases that tests get: in a run of many files they are copies of one, and yet apart from each other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrations } from '../src/database/migrations/list.ts';
import { type Statement, statement } from '../src/database/store.ts';
import { createMigratedPlace, engines, findReasonToSkip, openTestStore } from './support/store/engines.ts';
import { insertNoteSql, listIds, noteMigration } from './support/store/note-store.ts';

const listMigrationsSql: Statement<{ readonly id: number }> = statement(
  'test-migrations-list',
  'SELECT id FROM schema_migrations UNION SELECT id FROM schema_expansions ORDER BY id',
);

for (const engine of engines)
  test(`databases of two tests have all migrations, and no rows in common (${engine})`, {
    skip: findReasonToSkip(engine),
  }, async () => {
    await using one = await createMigratedPlace(engine);
    await using other = await createMigratedPlace(engine);
    const options = { migrations: [...migrations, noteMigration] };
    await using store = await openTestStore(one, options);
    await using otherStore = await openTestStore(other, options);
    await store.write(insertNoteSql, ['a', 1]);
    assert.deepEqual([await listIds(store), await listIds(otherStore)], [['a'], []]);
    const applied = (await otherStore.read(listMigrationsSql)).map(({ id }) => id);
    assert.deepEqual(new Set(applied), new Set(options.migrations.map(({ id }) => id)));
  });
