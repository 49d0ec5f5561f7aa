import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { createDataDir } from '../../../test/support/programs/start-program.ts';

test('a link of a command can be opened, whatever the service listens on', async (t) => {
  const dataDir = createDataDir();
  t.after(() => rmSync(dataDir, { recursive: true }));
  const hosts: [HOST: string, url: string][] = [
    ['0.0.0.0', 'http://localhost:8080/'],
    ['::', 'http://localhost:8080/'],
    ['::1', 'http://[::1]:8080/'],
  ];
  for (const [index, [HOST, url]] of hosts.entries()) {
    const argv = ['user', 'invite', '--login', `grace${index}`, '--name', 'Grace', '--json'];
    const run = await runTrivet(argv, { env: { TRIVET_DATA_DIR: dataDir, HOST } });
    assert.ok(JSON.parse(run.stdout).link.startsWith(url), run.stdout);
  }
});

test('trivet user says who is invited, and has no way to sign in yet', async (t) => {
  const dataDir = createDataDir();
  t.after(() => rmSync(dataDir, { recursive: true }));
  const run = (command: string, input = '') =>
    runTrivet(command.split(' '), { env: { TRIVET_DATA_DIR: dataDir }, input });
  await run('user create --login ada --name Ada --password-stdin', 'a long password');
  await run('user create --login eve --name Eve --admin');
  await run('user create --login grace --name Grace');
  assert.match((await run('user list')).stdout, /ada .* active .*\neve .* admin, invited .*\ngrace .* invited /);
  const show = async (login: string) => JSON.parse((await run(`user show ${login} --json`)).stdout);
  assert.deepEqual([(await show('ada')).isInvited, (await show('grace')).isInvited], [false, true]);
  await run('user password grace --password-stdin', 'another password');
  assert.match((await run('user show grace')).stdout, /grace .* active /);
  await run('user disable grace');
  assert.match((await run('user list')).stdout, /grace .* disabled /);
});
