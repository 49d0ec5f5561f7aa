import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { createFormClient } from '../support/network/form-client.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';

const PASSWORD = 'correct horse battery';

test('a fresh service is set up by the link that its start ends with, and by nothing else', async () => {
  await using program = await startProgram();
  const link = new URL(/http\S+\/setup\?token=\S+/.exec(program.output())?.[0] ?? '');
  assert.doesNotMatch(program.log(), /setup\?token/, 'logs are kept, and the link is a secret');
  assert.equal(link.origin, program.httpUrl);
  const client = createFormClient(program.httpUrl);
  assert.equal((await client.get('/setup?token=guessed')).status, 403);
  const given = { login: 'root', name: 'Root', email: '', password: PASSWORD };
  assert.equal((await client.submit(link.pathname + link.search, '/setup', given)).location, '/');
  assert.match((await client.get('/')).body, /Overview[\s\S]*All activity/);
  assert.equal((await client.get(link.pathname + link.search)).status, 403);
});

test('an account made by the command line signs in, and is out once it is disabled, the service being up', async () => {
  await using program = await startProgram();
  const trivet = (argv: readonly string[], input = '') =>
    runTrivet(argv, { env: { TRIVET_DATA_DIR: program.dataDir }, input });
  // The last administrator who can sign in cannot be disabled.
  const root = ['--login', 'root', '--name', 'Root', '--password-stdin', '--admin'];
  await trivet(['user', 'create', ...root], PASSWORD);
  const made = await trivet(
    ['user', 'create', '--login', 'ada', '--name', 'Ada', '--email', 'ada@example.org', '--password-stdin', '--admin'],
    `${PASSWORD}\n`,
  );
  assert.match(made.stdout, /^Created ada \([0-9a-f]{24}\)\n$/);
  const client = createFormClient(program.httpUrl);
  await client.submit('/sign-in', '/sign-in', { login: 'ada', password: PASSWORD });
  assert.equal((await client.get('/account')).status, 200);
  assert.equal((await trivet(['user', 'disable', 'ada'])).code, 0);
  assert.equal((await client.get('/account')).status, 303);
  assert.match((await trivet(['user', 'list'])).stdout, /^ada +Ada +ada@example\.org +disabled/m);
  assert.equal((await trivet(['user', 'enable', 'ada'])).code, 0);
  assert.equal((await trivet(['user', 'password', 'ada', '--password-stdin'], 'another long password')).code, 0);
  const again = createFormClient(program.httpUrl);
  const answer = await again.submit('/sign-in', '/sign-in', { login: 'ada', password: 'another long password' });
  assert.equal(answer.status, 303);
  const kinds = (await trivet(['audit', '--user', 'ada', '--json'])).stdout
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { kind: string }).kind);
  assert.deepEqual(kinds, ['sign_in', 'password_changed', 'user_enabled', 'user_disabled', 'sign_in', 'user_created']);
});

test('the command line refuses with a reason and exit code, and keeps organizations in order', async (t) => {
  const dataDir = createDataDir();
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const trivet = (argv: readonly string[], input = '') => runTrivet(argv, { env: { TRIVET_DATA_DIR: dataDir }, input });
  const create = (login: string, password: string) =>
    trivet(['user', 'create', '--login', login, '--name', 'N', '--password-stdin'], password);
  const short = await create('ada', 'short');
  assert.deepEqual(
    [short.code, short.stderr],
    [2, 'Cannot use the password: it must be 10 to 256 characters long, got 5\n'],
  );
  assert.equal((await create('ada', PASSWORD)).code, 0);
  assert.deepEqual(await create('ADA', PASSWORD), {
    code: 1,
    stdout: '',
    stderr: 'Cannot create the user: the login "ADA" is taken\n',
  });
  assert.equal((await trivet(['org', 'create', 'ada', '--owner', 'ada'])).code, 1);
  assert.equal((await trivet(['org', 'create', 'acme', '--owner', 'ada', '--name', 'Acme'])).code, 0);
  assert.equal((await create('grace', PASSWORD)).code, 0);
  assert.equal((await trivet(['org', 'add', 'acme', 'grace'])).code, 0);
  assert.match((await trivet(['org', 'members', 'acme'])).stdout, /ada +N +owner\ngrace +N +member/);
  const last = await trivet(['org', 'remove', 'acme', 'ada']);
  assert.equal(last.stderr, 'Cannot remove the member: an organization needs at least one owner\n');
  assert.equal((await trivet(['user', 'disable', 'missing'])).code, 1);
});
