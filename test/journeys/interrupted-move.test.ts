/** A move to PostgreSQL that ends in its commit leaves no two stores that a service would serve. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import pg from 'pg';
import { waitUntil } from '../support/basics/wait-until.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createEmptyStore, createStorePlace, findReasonToSkip, openTestStore } from '../support/store/engines.ts';

const LOCK = 8_150_233;

/** Creates a store with one row, on which a trigger of the target runs when the copy is committed. */
async function createMove(atCommit: string) {
  const parts = new AsyncDisposableStack();
  const { dataDir, databaseUrl = '' } = await createStorePlace('postgres');
  parts.defer(() => rmSync(dataDir, { recursive: true }));
  await createEmptyStore(dataDir);
  using source = new DatabaseSync(join(dataDir, 'trivet.db'));
  source.exec("INSERT INTO topics (name, version, changed_at_ms) VALUES ('moved', 1, 0)");
  await (await openTestStore({ dataDir: '', databaseUrl }))[Symbol.asyncDispose]();
  const client = new pg.Client(databaseUrl);
  await client.connect();
  parts.defer(() => client.end());
  await client.query(`CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN ${atCommit}; RETURN NULL; END $$`);
  await client.query(`CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON topics DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.name = 'moved') EXECUTE FUNCTION at_commit()`);
  return {
    client,
    argv: ['migrate', '--from', `sqlite:${dataDir}`, '--to', databaseUrl],
    mark: join(dataDir, 'trivet.moved'),
    /** A command without DATABASE_URL. */
    listUsers: () => runTrivet(['user', 'list'], { env: { TRIVET_DATA_DIR: dataDir } }),
    countMoved: async () => (await client.query("SELECT 1 FROM topics WHERE name = 'moved'")).rows.length,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

test('a move that is killed in its commit refuses the old store, and a second move names the first', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  await using move = await createMove(`PERFORM pg_advisory_xact_lock(${LOCK})`);
  await move.client.query('SELECT pg_advisory_lock($1)', [LOCK]);
  const command = spawn(process.execPath, ['src/cli/trivet.ts', ...move.argv], { stdio: 'ignore' });
  const committingSql = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = ${LOCK}`;
  await waitUntil(async () => (await move.client.query(committingSql)).rows.length > 0);
  command.kill('SIGKILL');
  await once(command, 'close');
  const refused = await move.listUsers();
  assert.equal(refused.code, 1, refused.stdout);
  assert.match(refused.stderr, /it may have been moved\. A move to the PostgreSQL database "\w+" began at 20/);

  await move.client.query('SELECT pg_advisory_unlock($1)', [LOCK]);
  await waitUntil(async () => (await move.countMoved()) > 0);
  const again = await runTrivet(move.argv);
  assert.equal(again.code, 1, again.stdout);
  assert.match(
    again.stderr,
    /the target must be unused, .* A move to the PostgreSQL database "\w+" began at 20.*set DATABASE_URL/,
  );
});

test('a move whose commit the server refuses leaves the old store as it was', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  await using move = await createMove("RAISE EXCEPTION 'refused at the commit'");
  const run = await runTrivet(move.argv);
  assert.equal(run.code, 1, run.stdout);
  assert.match(run.stderr, /^Cannot store the copy: refused at the commit$/m);
  assert.equal(existsSync(move.mark), false);
  assert.equal((await move.listUsers()).code, 0);
  await move.client.query('DROP TRIGGER at_commit ON topics');
  const repeated = await runTrivet(move.argv);
  assert.equal(repeated.code, 0, repeated.stderr);
  assert.match((await move.listUsers()).stderr, /it was moved\. Copied to/);
});
