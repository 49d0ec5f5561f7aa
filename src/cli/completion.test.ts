import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { skipWithout } from '../../test/support/basics/client-tools.ts';
import { runTrivet } from '../../test/support/programs/run-trivet.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-completion-'));
after(() => rmSync(folder, { recursive: true }));

/** Returns the words that bash offers at the end of a line. */
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
  assert.deepEqual(complete(script, 'trivet completion z'), ['zsh']);
  assert.ok(complete(script, 'trivet ').includes('doctor'));
});

/** A zsh at a terminal gets the line and a tab; resolves with what it shows once that has the completed line. */
async function completeInZsh(script: string, line: string, completed: string): Promise<string> {
  const program = `zmodload zsh/zpty
    zpty shell 'TERM=dumb PS1= zsh -f -i'
    zpty -w shell 'unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -D -u; source ${script}; echo "is ready"'
    zpty -r shell shown '*is ready*is ready*'
    zpty -w -n shell '${line}'$'\\t'
    zpty -r shell shown '*${completed}*'
    zpty -d shell
    print -r -- "$shown"`;
  return (await promisify(execFile)('zsh', ['-f', '-c', program], { timeout: 60_000 })).stdout;
}

const ZSH_LINES = [
  ['trivet mod', 'trivet model '],
  ['trivet model pro', 'trivet model promote '],
  ['trivet hook all en', 'trivet hook all enable '],
  ['trivet user create --login ada --pass', 'trivet user create --login ada --password-stdin '],
  ['trivet completion fi', 'trivet completion fish '],
] as const;

test('zsh completes commands, commands below them, options and values', {
  skip: skipWithout('zsh', ['zsh', '--version']),
}, async () => {
  const script = join(folder, 'trivet.zsh');
  writeFileSync(script, (await runTrivet(['completion', 'zsh'])).stdout);
  for (const [line, completed] of ZSH_LINES)
    assert.ok((await completeInZsh(script, line, completed)).includes(completed), line);
});

test('fish completes commands, commands below them, options and values', {
  skip: skipWithout('fish', ['fish', '--version']),
}, async () => {
  const script = join(folder, 'trivet.fish');
  writeFileSync(script, (await runTrivet(['completion', 'fish'])).stdout);
  const offer = (line: string) =>
    execFileSync('fish', ['-c', `source ${script}; complete -C '${line}'`], { encoding: 'utf8', cwd: folder })
      .trim()
      .split('\n');
  assert.deepEqual(offer('trivet mod'), ['model']);
  assert.deepEqual(offer('trivet model pro'), ['promote']);
  assert.deepEqual(offer('trivet user create --login ada --pass'), ['--password-stdin']);
  assert.deepEqual(offer('trivet completion fi'), ['fish']);
});

test('another shell is refused', async () => {
  assert.equal((await runTrivet(['completion', 'tcsh'])).code, 2);
});
