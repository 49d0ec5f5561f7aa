import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runTrivet } from '../../test/support/run-trivet.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-completion-'));
after(() => rmSync(folder, { recursive: true }));

/** What bash offers at the end of a line. */
function complete(script: string, line: string): string[] {
  const words = line
    .split(' ')
    .map((word) => `'${word}'`)
    .join(' ');
  const program = `source ${script}; COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _trivet; echo "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', program], { encoding: 'utf8' }).trim().split(' ');
}

test('bash completes commands, commands below them, and options', async () => {
  const script = join(folder, 'trivet.bash');
  writeFileSync(script, (await runTrivet(['completion', 'bash'])).stdout);
  assert.deepEqual(complete(script, 'trivet mod'), ['model']);
  assert.deepEqual(complete(script, 'trivet model pro'), ['promote']);
  assert.deepEqual(complete(script, 'trivet hook all en'), ['enable']);
  assert.deepEqual(complete(script, 'trivet user create --log'), ['--login']);
  assert.deepEqual(complete(script, 'trivet user create --login ada --pass'), ['--password-stdin']);
  assert.deepEqual(complete(script, 'trivet user list --ur'), ['--url']);
  assert.deepEqual(complete(script, 'trivet user list --serv'), ['--service']);
  assert.ok(complete(script, 'trivet ').includes('doctor'));
});

test('zsh and fish get scripts of their own, another shell is refused', async () => {
  assert.match((await runTrivet(['completion', 'zsh'])).stdout, /^autoload -U \+X bashcompinit/);
  assert.match((await runTrivet(['completion', 'fish'])).stdout, /complete -c trivet .*promote/);
  assert.equal((await runTrivet(['completion', 'tcsh'])).code, 2);
});
