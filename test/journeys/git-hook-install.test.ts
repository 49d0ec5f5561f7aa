import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { preparePushes } from '../support/webhooks/pushed-repository.ts';

test('the hook is not installed over another one', async (t) => {
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
  assert.match(again.stderr, /exists; add to it: exec /);
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
