import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, type ProgramEnvironment, startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, findReasonToSkip } from '../support/store/engines.ts';

/** A program that cannot start prints one line that names the place and the remedy, and no stack. */

async function readRefusal(environment: ProgramEnvironment, dataDir?: string): Promise<string> {
  const error = await startProgram(environment, dataDir).then(
    () => assert.fail('it started'),
    (caught: Error) => caught,
  );
  assert.doesNotMatch(error.message, /\n\s+at |Unexpected/);
  return error.message;
}

test('a data folder that cannot be written is named', () => {
  const dataDir = createDataDir();
  chmodSync(dataDir, 0o555);
  // Root may write anywhere, so the program runs as another user.
  const account = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;
  if (account !== undefined) chownSync(dataDir, account.uid, account.gid);
  const env = { PATH: process.env.PATH, HTTP_PORT: '0', GRPC_PORT: '0', TRIVET_DATA_DIR: dataDir };
  const run = spawnSync(process.execPath, ['src/main.ts'], { env, encoding: 'utf8', ...account });
  assert.equal(run.status, 2, run.stderr);
  assert.match(run.stderr, new RegExp(`^Cannot use the data folder "${dataDir}": EACCES`));
  assert.doesNotMatch(run.stderr, /\n\s+at /);
});

test('a store that is damaged is named, with what to do', async () => {
  const dataDir = createDataDir();
  writeFileSync(join(dataDir, 'trivet.db'), 'this is a text, and no database\n'.repeat(200));
  const text = await readRefusal({}, dataDir);
  assert.ok(text.includes(`Cannot open the database "${join(dataDir, 'trivet.db')}"`), text);
  assert.match(text, /file is not a database.*restore a backup/);
});

test('a lock file that is damaged is named', async () => {
  const dataDir = createDataDir();
  writeFileSync(join(dataDir, 'serve.lock'), 'no database'.repeat(200));
  assert.match(await readRefusal({}, dataDir), /Cannot lock ".*serve\.lock": file is not a database/);
});

test('a port that is taken is named with its setting', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  try {
    await new Promise((resolve) => taken.once('listening', resolve));
    const { port } = taken.address() as { port: number };
    const grpc = await readRefusal({ GRPC_PORT: String(port) });
    assert.ok(grpc.includes(`Cannot listen for gRPC on 127.0.0.1:${port}: the port is taken; set GRPC_PORT`), grpc);
    const http = await readRefusal({ HTTP_PORT: String(port) });
    assert.ok(http.includes(`Cannot listen for HTTP on 127.0.0.1:${port}: the port is taken; set HTTP_PORT`), http);
  } finally {
    taken.close();
  }
});

test('a variable that is nearly a setting is warned about', async () => {
  await using program = await startProgram({ HTTP_PROT: '1' });
  await program.stop();
  assert.match(program.log(), /"variable":"HTTP_PROT","meant":"HTTP_PORT"/);
});

test('a database whose keys are missing gets no new ones', async () => {
  const dataDir = createDataDir();
  const first = await startProgram({}, dataDir);
  await first.stop();
  rmSync(join(dataDir, 'keys'));
  assert.match(await readRefusal({}, dataDir), /bring back the file "keys"/);
  const command = await runTrivet(['user', 'create', '--login', 'ada', '--name', 'Ada'], {
    env: { TRIVET_DATA_DIR: dataDir },
  });
  assert.equal(command.code, 2);
  assert.equal(existsSync(join(dataDir, 'keys')), false);
  rmSync(dataDir, { recursive: true });
});

const READING: readonly (readonly string[])[] = [
  ['model', 'list'],
  ['app', 'list'],
  ['audit'],
  ['token', 'list', 'ada'],
  ['repo', 'list', 'ada'],
  ['hook', 'list', 'ada/doors'],
  ['user', 'password', 'ada', '--password-stdin'],
  ['vault', 'reseal'],
  ['backup', join(tmpdir(), 'trivet-never.db')],
];

for (const argv of READING)
  test(`trivet ${argv.slice(0, 2).join(' ')} creates no store in an empty folder`, async () => {
    const folder = createDataDir();
    const dataDir = join(folder, 'data');
    const run = await runTrivet(argv, { env: { TRIVET_DATA_DIR: dataDir }, input: 'correct horse battery staple\n' });
    assert.notEqual(run.code, 0);
    assert.ok(run.stderr.includes(dataDir), run.stderr);
    assert.deepEqual(readdirSync(folder), []);
    rmSync(folder, { recursive: true });
  });

test('a command that creates a store names the folder', async () => {
  const dataDir = join(createDataDir(), 'data');
  const env = { TRIVET_DATA_DIR: dataDir };
  const argv = ['user', 'create', '--login', 'ada', '--name', 'Ada'];
  const run = await runTrivet(argv, { env });
  assert.equal(run.code, 0, run.stderr);
  assert.ok(run.stderr.includes(`Created a store in "${dataDir}"`), run.stderr);
  const again = await runTrivet(['model', 'list'], { env });
  assert.equal(again.code, 0, again.stderr);
});

test('a command that reads makes no tables in an empty PostgreSQL database', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const place = await createStorePlace('postgres');
  const env = { DATABASE_URL: place.databaseUrl ?? '', TRIVET_DATA_DIR: place.dataDir };
  for (const round of [1, 2]) {
    const run = await runTrivet(['model', 'list'], { env });
    assert.equal(run.code, 2, `round ${round}: ${run.stderr}`);
    assert.match(run.stderr, /Cannot open the store: the database of DATABASE_URL has none yet/);
  }
  assert.deepEqual(readdirSync(place.dataDir), []);
});
