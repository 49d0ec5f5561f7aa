/**
 * Programs of two releases run on one database during an upgrade, and the older one must be able to start again. So a
 * migration expands, and the release after the next may contract: docs/how-to/upgrade.md.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrations } from '../src/database/migrations/list.ts';
import { findBreaks } from './support/rules/expansion-rules.ts';

/** The schema when the rule was made: no program that is older than these can run beside it. */
const FIRST_SCHEMA = [1, 10, 20, 21, 22, 23, 30, 40, 50, 51, 54, 61];

/** Expansions that the rules cannot prove, with what was done instead. */
const PROVEN_OTHERWISE: Readonly<Record<number, string>> = {
  62: 'makes a table again with the same columns: test/journeys/rolling-upgrade.test.ts runs the release before it on it',
};

/** Migrations that end a table or column which no supported release uses any more, with the last release that did. */
const CONTRACTIONS: Readonly<Record<number, string>> = {};

for (const migration of migrations) {
  const { id, name, isExpansion } = migration;
  if (FIRST_SCHEMA.includes(id) || id in CONTRACTIONS) continue;
  test(`the migration ${id}-${name} lets older programs run on`, () => {
    assert.ok(isExpansion, 'declare it with isExpansion: true, or as a contraction above');
    if (!(id in PROVEN_OTHERWISE)) assert.deepEqual(findBreaks(migration), []);
  });
}

test('no two migrations have the same number or name', () => {
  for (const key of ['id', 'name'] as const) {
    const all = migrations.map((migration) => migration[key]);
    assert.deepEqual([...new Set(all)], all);
  }
});

const EXPANSIONS: [title: string, statements: string[]][] = [
  ['a table', ['CREATE TABLE pets (id {INT} NOT NULL PRIMARY KEY, name {TEXT} NOT NULL UNIQUE)']],
  [
    'a table whose rows go with their parent',
    ['CREATE TABLE pets (owner {INT} REFERENCES users (id) ON DELETE CASCADE)'],
  ],
  [
    'rows of its own table',
    ['CREATE TABLE pets (id {INT})', `INSERT INTO pets (id) VALUES (1)`, 'UPDATE pets SET id = 2'],
  ],
  ['a unique index on its own table', ['CREATE TABLE pets (id {INT})', 'CREATE UNIQUE INDEX pets_by_id ON pets (id)']],
  ['an index', ["CREATE INDEX users_by_mail ON users (email) WHERE kind = 'DROP TABLE'"]],
  ['a column that may be null', ['ALTER TABLE users ADD COLUMN nickname {TEXT}']],
  ['a column with a default', ['ALTER TABLE users ADD COLUMN visits {INT} NOT NULL DEFAULT 0']],
  [
    'a column, filled',
    ['ALTER TABLE users ADD COLUMN nick {TEXT}', 'UPDATE users SET nick = name WHERE name IS NOT NULL'],
  ],
  ['a comment', ['-- why\nCREATE TABLE pets (\n  -- DROP TABLE users\n  id {INT}\n)']],
];
for (const [title, statements] of EXPANSIONS)
  test(`an expansion may add ${title}`, () => assert.deepEqual(findBreaks({ statements }), []));

const BREAKS: [title: string, statement: string][] = [
  ['drops a table', 'DROP TABLE users'],
  ['drops a column', 'ALTER TABLE users DROP COLUMN email'],
  ['drops an index', 'DROP INDEX users_by_login'],
  ['renames a table', 'ALTER TABLE users RENAME TO people'],
  ['renames a column', 'ALTER TABLE users RENAME COLUMN email TO mail'],
  ['narrows a type', 'ALTER TABLE users ALTER COLUMN email TYPE VARCHAR(10)'],
  ['forbids null', 'ALTER TABLE users ALTER COLUMN email SET NOT NULL'],
  ['adds a column that must be given', 'ALTER TABLE users ADD COLUMN visits {INT} NOT NULL'],
  ['adds a column whose default is null and must not be', 'ALTER TABLE users ADD visits {INT} NOT NULL DEFAULT NULL'],
  ['adds a column with a condition', 'ALTER TABLE users ADD COLUMN visits {INT} DEFAULT 0 CHECK (visits < 9)'],
  ['adds a constraint', 'ALTER TABLE users ADD CONSTRAINT mail UNIQUE (email)'],
  ['adds a unique index', 'CREATE UNIQUE INDEX users_by_mail ON users (email)'],
  ['adds a reference that blocks deletions', 'CREATE TABLE pets (owner {INT} NOT NULL REFERENCES users (id))'],
  ['changes rows', `UPDATE users SET email = lower(email)`],
  ['deletes rows', 'DELETE FROM users WHERE email IS NULL'],
  ['adds rows', `INSERT INTO users (id) VALUES (1)`],
  ['hides what it does in a second statement', 'CREATE INDEX one ON users (id); DROP TABLE users'],
  ['adds a trigger', 'CREATE TRIGGER t BEFORE INSERT ON users EXECUTE FUNCTION refuse()'],
];
for (const [title, statement] of BREAKS)
  test(`a migration that ${title} is refused`, () => assert.equal(findBreaks({ statements: [statement] }).length, 1));
