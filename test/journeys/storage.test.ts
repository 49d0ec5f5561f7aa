import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import pg from 'pg';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';
import { createEmptyStore, createStorePlace, findReasonToSkip } from '../support/store/engines.ts';

test('a second service on the same folder is refused, and names the folder and the first', async () => {
  await using program = await startProgram();
  await assert.rejects(startProgram({}, program.dataDir), (error: Error) =>
    error.message.includes(
      `the data folder "${program.dataDir}": it is in use by another trivet (process ${program.pid})`,
    ),
  );
});

test('a backup is made while the service runs', async () => {
  await using program = await startProgram();
  const file = join(program.dataDir, 'backup.db');
  const run = await runTrivet(['backup', file], { env: { TRIVET_DATA_DIR: program.dataDir } });
  assert.equal(run.code, 0, run.stderr);
  assert.ok(existsSync(file));
  assert.match(run.stderr, /Keep a copy of .*keys too/);
  const again = await runTrivet(['backup', file], { env: { TRIVET_DATA_DIR: program.dataDir } });
  assert.equal(again.code, 1);
});

test('a service moves from SQLite to PostgreSQL with everything, and only with its keys', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const place = await createStorePlace('postgres');
  const env = { DATABASE_URL: place.databaseUrl ?? '' };
  await using program = await startProgram();
  const argv = ['migrate', '--from', `sqlite:${program.dataDir}`, '--to', 'postgres'];
  const early = await runTrivet(argv, { env });
  assert.equal(early.code, 1);
  assert.match(early.stderr, /is in use by another trivet/);

  assert.equal(await program.stop(), 0);
  const run = await runTrivet(argv, { env });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stdout, /vault_canaries +1/);

  await assert.rejects(startProgram(env), /encrypted with a key that this program was not given/);
  await using moved = await startProgram(env, program.dataDir);
  assert.equal((await fetch(`${moved.httpUrl}/readyz`)).status, 200);
  assert.equal(await moved.stop(), 0);

  await assert.rejects(startProgram({}, program.dataDir), (error: Error) => {
    assert.match(error.message, /it was moved\. Copied to the PostgreSQL database "\w+" at 20/);
    assert.match(
      error.message,
      /Set DATABASE_URL to use the copy, or delete ".+trivet\.moved" to use this old database/,
    );
    return true;
  });
  const command = await runTrivet(['user', 'list'], { env: { TRIVET_DATA_DIR: program.dataDir } });
  assert.match(command.stderr, /it was moved/);
  const backup = await runTrivet(['backup', join(place.dataDir, 'late.db')], {
    env: { TRIVET_DATA_DIR: program.dataDir },
  });
  assert.equal(backup.code, 1);
  assert.match(backup.stderr, /it was moved/);
  rmSync(join(program.dataDir, 'trivet.moved'));
  await using old = await startProgram({}, program.dataDir);
  assert.equal((await fetch(`${old.httpUrl}/readyz`)).status, 200);
  rmSync(place.dataDir, { recursive: true });
});

test('trivet migrate refuses what is no database, without showing it', async () => {
  const dataDir = createDataDir();
  const run = (to: string) => runTrivet(['migrate', '--from', `sqlite:${dataDir}`, '--to', to]);
  const unknown = await run('mysql://user:geheim@host/base');
  assert.equal(unknown.code, 2);
  assert.doesNotMatch(unknown.stderr, /geheim/);
  const absent = await run(`sqlite:${dataDir}-other`);
  assert.equal(absent.code, 1);
  assert.match(absent.stderr, /there is no database in/);
  rmSync(dataDir, { recursive: true });
});

test('trivet migrate refuses a source of PostgreSQL without a store, and makes none there', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const { dataDir, databaseUrl } = await createStorePlace('postgres');
  const run = await runTrivet(['migrate', '--from', 'postgres', '--to', `sqlite:${join(dataDir, 'copy')}`], {
    env: { DATABASE_URL: databaseUrl! },
  });
  assert.equal(run.code, 1, run.stdout);
  assert.match(run.stderr, /^Cannot copy: there is no store in the PostgreSQL database "\w+"$/m);
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const { rows } = await client.query(
    'SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace',
  );
  await client.end();
  assert.deepEqual(rows, []);
  rmSync(dataDir, { recursive: true });
});

test('trivet migrate names the table that cannot be copied, and why, in one line', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const { dataDir, databaseUrl } = await createStorePlace('postgres');
  await createEmptyStore(dataDir);
  const source = new DatabaseSync(join(dataDir, 'trivet.db'));
  // PostgreSQL stores no text with a NUL character.
  source.exec("INSERT INTO leases (name, owner, epoch, expires_at_ms) VALUES ('a' || char(0) || 'b', 'c', 1, 0)");
  source.close();
  const run = await runTrivet(['migrate', '--from', `sqlite:${dataDir}`, '--to', databaseUrl!]);
  assert.equal(run.code, 1, run.stdout);
  assert.match(run.stderr, /^Cannot copy the table "leases": invalid byte sequence .*\n$/m);
  assert.doesNotMatch(run.stderr, /^ +at /m);
  rmSync(dataDir, { recursive: true });
});

test('commands do not take a folder that they cannot read for one without a store', async () => {
  const folder = createDataDir();
  mkdirSync(folder, { recursive: true });
  const dataDir = join(folder, 'loop');
  symlinkSync('loop', dataDir);
  const commands = [
    ['user', 'list'],
    ['backup', join(folder, 'backup.db')],
    ['doctor'],
    ['migrate', '--from', 'sqlite', '--to', `sqlite:${join(folder, 'copy')}`],
  ];
  for (const argv of commands) {
    const { code, stdout, stderr } = await runTrivet(argv, { env: { TRIVET_DATA_DIR: dataDir } });
    assert.notEqual(code, 0, argv[0]);
    assert.match(stdout + stderr, /Cannot look for ".+loop\/trivet\.\w+": ELOOP/, argv[0]);
  }
  rmSync(folder, { recursive: true });
});
