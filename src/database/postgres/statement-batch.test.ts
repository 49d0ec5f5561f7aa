import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { findReasonToSkip } from '../../../test/support/store/engines.ts';
import { type PostgresCluster, startPostgresCluster } from '../../../test/support/store/postgres-cluster.ts';
import type { Failure } from '../../errors.ts';
import type { BoundStatement, SqlValue } from '../store.ts';
import { findParser } from './column-parsers.ts';
import { runBatch } from './statement-batch.ts';

const skip = findReasonToSkip('postgres');
const prepared = { isPrepared: true };

let cluster: PostgresCluster;
let client: pg.Client;

before(async () => {
  if (skip) return;
  cluster = await startPostgresCluster();
  const types = { getTypeParser: findParser as never };
  client = new pg.Client({ host: cluster.socketDir, user: 'postgres', database: 'postgres', types });
  await client.connect();
  await client.query('CREATE TABLE door (id BIGINT PRIMARY KEY, name TEXT, picture BYTEA)');
});

after(async () => {
  if (skip) return;
  await client.end();
  await cluster.stop();
});

function bind(name: string, text: string, parameters: readonly SqlValue[] = []): BoundStatement {
  return { statement: { name, text }, parameters };
}

const begin = bind('test_begin', 'BEGIN');
const commit = bind('test_commit', 'COMMIT');
const rollback = bind('test_rollback', 'ROLLBACK');
const insert = (id: number, name: string | null = null, picture: Uint8Array | null = null) =>
  bind('test_insert', 'INSERT INTO door (id, name, picture) VALUES ($1, $2, $3)', [id, name, picture]);
const list = bind('test_list', 'SELECT id, name, picture FROM door ORDER BY id');

for (const isPrepared of [true, false])
  test(`runBatch() answers each statement, ${isPrepared ? 'prepared' : 'not prepared'}, as often as it runs`, {
    skip,
  }, async () => {
    for (let round = 0; round < 3; round += 1) {
      const picture = new Uint8Array([0, 255]);
      const answers = await runBatch(client, [begin, insert(1), insert(2, 'é', picture), list, rollback], {
        isPrepared,
      });
      assert.deepEqual(
        answers.map(({ command }) => command),
        ['BEGIN', 'INSERT', 'INSERT', 'SELECT', 'ROLLBACK'],
      );
      assert.deepEqual(answers[3]?.rows, [
        { id: 1, name: null, picture: null },
        { id: 2, name: 'é', picture },
      ]);
    }
  });

test('runBatch() runs nothing after a statement that failed, and names it', { skip }, async () => {
  const unknown = bind('test_unknown', 'SELECT missing FROM door');
  await assert.rejects(runBatch(client, [begin, insert(5), unknown, insert(6), commit], prepared), (error: Failure) => {
    assert.match(error.message, /^Cannot run "test_unknown"/);
    return true;
  });
  await runBatch(client, [rollback], prepared);
  const [answer] = await runBatch(client, [list], prepared);
  assert.deepEqual(answer?.rows, []);
});

test('runBatch() runs a statement again that failed when it was prepared', { skip }, async () => {
  const divide = (by: number) => bind('test-divide', 'SELECT 10 / CAST($1 AS BIGINT) AS quotient', [by]);
  await assert.rejects(runBatch(client, [divide(0)], prepared));
  const [answer] = await runBatch(client, [divide(5)], prepared);
  assert.deepEqual(answer?.rows, [{ quotient: 2 }]);
});

test('runBatch() fails for a value that cannot be read, and the connection goes on', { skip }, async () => {
  const huge = bind('test_huge', 'SELECT 9007199254740993 AS id');
  await assert.rejects(runBatch(client, [huge, list], prepared), (error: Failure) => {
    assert.match(error.message, /^Cannot run "test_huge"/);
    return true;
  });
  const [answer] = await runBatch(client, [list], prepared);
  assert.deepEqual(answer?.rows, []);
});

test('runBatch() without BEGIN stores all statements or none', { skip }, async () => {
  await assert.rejects(runBatch(client, [insert(7), insert(7)], prepared), { code: 'conflict' });
  const [answer] = await runBatch(client, [list], prepared);
  assert.deepEqual(answer?.rows, []);
});
