import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReadOnly, renderDdl, toSqliteParameters } from './portable-sql.ts';

const rewritten: [title: string, text: string, expected: string][] = [
  ['numbers parameters', 'SELECT $1, $12 WHERE a = $1', 'SELECT ?1, ?12 WHERE a = ?1'],
  ['leaves out the numbers of parameters in their order', 'SELECT $1, $2 -- $1\n, $3', 'SELECT ?, ? -- $1\n, ?'],
  ['leaves text in quotes', `SELECT '$1 it''s $2', "$3", $4`, `SELECT '$1 it''s $2', "$3", ?4`],
  ['leaves comments', 'SELECT $1 -- the $2\n, $3', 'SELECT ?1 -- the $2\n, ?3'],
];
for (const [title, text, expected] of rewritten)
  test(`toSqliteParameters() ${title}`, () => assert.equal(toSqliteParameters(text), expected));

const reading: [text: string, expected: boolean][] = [
  ['SELECT 1', true],
  ['\n  with a AS (SELECT 1) SELECT * FROM a', true],
  ['VALUES (1)', true],
  ['UPDATE a SET b = 1', false],
  ['WITH a AS (DELETE FROM b RETURNING *) SELECT * FROM a', false],
  ['WITH a AS (UPDATE b SET c = 1 RETURNING *) SELECT * FROM a', false],
  ['SELECTION', false],
];
for (const [text, expected] of reading)
  test(`isReadOnly() says ${expected} of ${JSON.stringify(text)}`, () => assert.equal(isReadOnly(text), expected));

test('renderDdl() writes the types of each engine, and makes tables strict where they are not by themselves', () => {
  const table = 'CREATE TABLE a (b {INT}, c {REAL}, d {TEXT}, e {BLOB});\n';
  assert.equal(renderDdl('sqlite', table), 'CREATE TABLE a (b INTEGER, c REAL, d TEXT, e BLOB) STRICT');
  assert.equal(
    renderDdl('postgres', table),
    'CREATE TABLE a (b BIGINT, c DOUBLE PRECISION, d TEXT COLLATE "C", e BYTEA);\n',
  );
  assert.equal(renderDdl('sqlite', 'CREATE INDEX a_b ON a (b)'), 'CREATE INDEX a_b ON a (b)');
  assert.throws(() => renderDdl('sqlite', 'CREATE TABLE a (b {INTEGER})'), { code: 'internal' });
});
