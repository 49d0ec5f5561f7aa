import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { appendHookOption, preparePushes, startIntake } from '../support/webhooks/pushed-repository.ts';

test('the hook is not installed over one that a person has changed', async (t) => {
  const { bare, work } = await preparePushes(t);
  writeFileSync(join(work, 'token'), 't');
  const again = await runTrivet([
    'git-hook',
    'install',
    bare,
    '--repo',
    'acme/doors',
    '--token-file',
    join(work, 'token'),
  ]);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /runs "git-hook post-receive" in its own way; take that line out, and install again/);
  const elsewhere = await runTrivet([
    'git-hook',
    'install',
    work,
    '--repo',
    'acme/doors',
    '--token-file',
    join(work, 'token'),
  ]);
  assert.equal(elsewhere.code, 2);
});

test('a hook that the repository has already runs beside ours, as the refusal proposes', async (t) => {
  const { bare, work, commit, push, intake } = await preparePushes(t);
  const hook = join(bare, 'hooks', 'post-receive');
  const own = '#!/bin/sh\nwhile read -r before after name; do echo "$before $after $name" >> own.txt; done\n';
  writeFileSync(hook, own);
  chmodSync(hook, 0o755);
  writeFileSync(join(work, 'token'), 't');
  const url = `http://127.0.0.1:${intake.port}`;
  const argv = ['git-hook', 'install', bare, '--repo', 'acme/doors', '--url', url, '--token-file', join(work, 'token')];
  const refused = await runTrivet(argv);
  assert.equal(refused.code, 1);
  const [, advice] = /exists; it can run too: (mv .*), and install again/.exec(refused.stderr) ?? [];
  assert.ok(advice, refused.stderr);
  execFileSync('sh', ['-c', advice]);
  for (const _ of [1, 2]) assert.equal((await runTrivet(argv)).code, 0, 'also once more, over its own');
  assert.equal(readFileSync(`${hook}.local`, 'utf8'), own);
  const ids = [commit('a.txt', 'one'), commit('a.txt', 'two')];
  assert.equal(await push('main', 'HEAD:refs/heads/next'), '');
  assert.deepEqual(
    intake.published.map(({ event }) => [event.ref, event.after]),
    ['refs/heads/main', 'refs/heads/next'].map((ref) => [ref, ids[1]]),
  );
  const seen = readFileSync(join(bare, 'own.txt'), 'utf8').trim().split('\n');
  assert.deepEqual(
    seen.map((line) => line.split(' ').slice(1)),
    ['refs/heads/main', 'refs/heads/next'].map((ref) => [ids[1], ref]),
  );
});

test('a hook that git ignored, since it is not executable, is ignored beside ours too', async (t) => {
  const { bare, work, commit, push, intake } = await preparePushes(t);
  const hook = join(bare, 'hooks', 'post-receive');
  writeFileSync(hook, '#!/bin/sh\necho ran >> own.txt\n');
  chmodSync(hook, 0o644);
  writeFileSync(join(work, 'token'), 't');
  const url = `http://127.0.0.1:${intake.port}`;
  const argv = ['git-hook', 'install', bare, '--repo', 'acme/doors', '--url', url, '--token-file', join(work, 'token')];
  const [, advice] = /(mv .*), and install again/.exec((await runTrivet(argv)).stderr) ?? [];
  assert.ok(advice);
  execFileSync('sh', ['-c', advice]);
  assert.equal((await runTrivet(argv)).code, 0);
  commit('a.txt', 'one');
  assert.equal(await push('main'), '');
  assert.equal(intake.published.length, 1);
  assert.ok(!existsSync(join(bare, 'own.txt')));
});

const formerly = "'/opt/it'\\''s/node-20' '/opt/old/trivet.js' git-hook post-receive --repo 'a/b'";
const formerScripts: [title: string, lines: readonly string[]][] = [
  ['alone', [`exec ${formerly}`]],
  [
    'beside another hook',
    ['input=$(cat)', `printf '%s\\n' "$input" | ${formerly}`, `printf '%s\\n' "$input" | "$0.local"`],
  ],
];
for (const [title, lines] of formerScripts)
  test(`the hook is installed over that of another Node, version and repository, ${title}`, async (t) => {
    const { bare, work } = await preparePushes(t);
    const hook = join(bare, 'hooks', 'post-receive');
    writeFileSync(hook, ['#!/bin/sh', ...lines, ''].join('\n'));
    writeFileSync(join(work, 'token'), 't');
    const argv = ['git-hook', 'install', bare, '--repo', 'acme/doors', '--token-file', join(work, 'token')];
    assert.equal((await runTrivet(argv)).code, 0);
    assert.match(readFileSync(hook, 'utf8'), /--repo 'acme\/doors'$/m);
  });

test('post-receive says that it got no input, as behind a command that has read it', async (t) => {
  const { bare } = await preparePushes(t);
  const run = await runTrivet(['git-hook', 'post-receive', '--repo', 'acme/doors', '--git-dir', bare]);
  assert.deepEqual(
    [run.code, run.stderr],
    [0, 'trivet: nothing is published, since git-hook post-receive got no input\n'],
  );
});

test('a token file without one token is refused', async (t) => {
  const { bare, work } = await preparePushes(t);
  rmSync(join(bare, 'hooks', 'post-receive'));
  const token = join(work, 'token');
  for (const [text, message] of [
    ['\n', /must hold one token, but ".*token" is empty/],
    ['Cannot open the store\n', /must hold one token, but ".*token" has more than that/],
  ] as const) {
    writeFileSync(token, text);
    const refused = await runTrivet(['git-hook', 'install', bare, '--repo', 'acme/doors', '--token-file', token]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, message);
  }
});

test('the hook is installed over its own, with another address and token', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-git-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const bare = join(folder, 'doors.git');
  execFileSync('git', ['init', '-q', '--bare', bare]);
  const token = join(folder, 'token');
  for (const text of ['first', 'second']) {
    writeFileSync(token, text);
    const url = `http://${text}.example`;
    const argv = ['git-hook', 'install', bare, '--repo', 'acme/doors', '--url', url, '--token-file', token];
    assert.equal((await runTrivet(argv)).code, 0);
    assert.deepEqual(JSON.parse(readFileSync(join(bare, 'trivet.json'), 'utf8')), { url, token: text });
  }
});

test('damaged settings of the hook are named without their token', async (t) => {
  const { bare } = await preparePushes(t);
  writeFileSync(join(bare, 'trivet.json'), '{"url": "http://127.0.0.1:1", "token": secret}');
  const sent = await runTrivet(['git-hook', 'send', '--git-dir', bare]);
  assert.equal(sent.code, 2);
  assert.match(sent.stderr, /^Cannot read the settings of the hook in ".*trivet\.json": it is not valid JSON\n$/);
});

for (const text of ['null', '[]', '7', '"url"', '{"url": 7}', '{"token": null}'])
  test(`settings of the hook that hold ${text} are refused with what is allowed`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-git-'));
    t.after(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'trivet.json'), text);
    const sent = await runTrivet(['git-hook', 'send', '--git-dir', folder]);
    assert.equal(sent.code, 2);
    assert.match(sent.stderr, /^Cannot read the settings .*: it must be an object whose url and token are strings\n$/);
  });

test('the stored token goes to the service alone that it was stored for', async (t) => {
  const { bare, work, commit, push, intake, waiting } = await preparePushes(t);
  const other = await startIntake();
  t.after(() => other.close());
  const hook = join(bare, 'hooks', 'post-receive');
  const elsewhere = ['--service', `http://127.0.0.1:${other.port}`];
  const script = readFileSync(hook, 'utf8');
  appendHookOption(hook, elsewhere.join(' '));
  commit('a.txt', 'one');
  assert.match(await push('main'), /the token in ".*trivet\.json" is for "http:.*"; give --token-file\s*$/);
  assert.equal(waiting().length, 1);
  const send = async (...options: string[]) => await runTrivet(['git-hook', 'send', '--git-dir', bare, ...options]);
  const refused = await send(...elsewhere);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /^Cannot reach "http:.*": the token in ".*trivet\.json" is for /);
  assert.deepEqual(other.published, []);
  writeFileSync(join(work, 'token'), 'of-the-other');
  assert.equal((await send(...elsewhere, '--token-file', join(work, 'token'))).stdout, '1 sent, 0 waiting\n');
  assert.deepEqual(
    other.published.map(({ token }) => token),
    ['Bearer of-the-other'],
  );
  writeFileSync(hook, script);
  appendHookOption(hook, `--service HTTP://127.0.0.1:${intake.port}/`);
  commit('a.txt', 'two');
  assert.equal(await push('main'), '');
  assert.equal(intake.published.length, 1);
});

/** A bare repository whose hook is not installed, and the command that installs it. */
function prepareBare(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-git-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const bare = join(folder, 'doors.git');
  execFileSync('git', ['init', '-q', '--bare', bare]);
  writeFileSync(join(folder, 'token'), 'secret');
  const install = () =>
    runTrivet(['git-hook', 'install', bare, '--repo', 'acme/doors', '--token-file', join(folder, 'token')]);
  const setHooks = (path: string) => execFileSync('git', ['--git-dir', bare, 'config', 'core.hooksPath', path]);
  return { folder, bare, install, setHooks };
}

test('the hook is not installed where git does not run it: core.hooksPath is named, and no token stays behind', async (t) => {
  const { folder, bare, install, setHooks } = prepareBare(t);
  setHooks(join(folder, 'hooks-of-all'));
  const refused = await install();
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /^Cannot install the hook: git runs the hooks in ".*hooks-of-all", outside .*core\.hooksPath/,
  );
  assert.ok(!existsSync(join(bare, 'trivet.json')));
  const [, advice = ''] = /give it its own: (git .*)\n/.exec(refused.stderr) ?? [];
  execFileSync('sh', ['-c', advice]);
  assert.equal((await install()).code, 0);
  assert.ok(existsSync(join(bare, 'hooks', 'post-receive')));
});

test('the hook is installed in a folder of the repository that core.hooksPath names', async (t) => {
  const { bare, install, setHooks } = prepareBare(t);
  setHooks('own/hooks');
  assert.equal((await install()).code, 0);
  assert.match(readFileSync(join(bare, 'own', 'hooks', 'post-receive'), 'utf8'), /git-hook post-receive/);
});

test('the hook is installed in a repository without a folder for hooks', async (t) => {
  const { bare, install } = prepareBare(t);
  rmSync(join(bare, 'hooks'), { recursive: true });
  assert.equal((await install()).code, 0);
  assert.ok(existsSync(join(bare, 'hooks', 'post-receive')));
});

test('where the hook cannot be written, no token stays behind', async (t) => {
  const { bare, install } = prepareBare(t);
  rmSync(join(bare, 'hooks'), { recursive: true });
  writeFileSync(join(bare, 'hooks'), 'no folder');
  const refused = await install();
  assert.deepEqual([refused.code, refused.stderr.slice(0, 31)], [1, 'Cannot install the hook: EEXIST']);
  assert.ok(!existsSync(join(bare, 'trivet.json')));
});
