/** Installs the post-receive hook of `trivet git-hook` in a bare repository, and stores the service and the token for it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { Command } from 'commander';
import { print, printJson, remark } from '../../command-line/output.ts';
import { describeError, Failure } from '../../errors.ts';
import type { ServiceAddress } from '../git/http-sender.ts';
import { DEFAULT_URL, parseRepository, readToken, SETTINGS_FILE } from './git-hook-settings.ts';

export function createInstall(): Command {
  return new Command('install')
    .description('Set a bare repository up: the hook, and the service it publishes to')
    .argument('<folder>', 'the bare repository')
    .requiredOption(
      '--repository, --repo <owner/name>',
      'the repository here that the events belong to',
      parseRepository,
    )
    .option('--url, --service <url>', 'address of the service', DEFAULT_URL)
    .requiredOption('--token-file <file>', 'file with a token of the scope events:write or all_hook')
    .option('--json', 'print JSON')
    .action(install);
}

interface InstallOptions {
  readonly repo: string;
  readonly service: string;
  readonly tokenFile: string;
  readonly json?: true;
}

function install(folder: string, options: InstallOptions): void {
  if (!existsSync(join(folder, 'objects')))
    throw new Failure('invalid', `Cannot install the hook: "${folder}" must be a bare git repository`);
  const hook = join(findHooks(folder), 'post-receive');
  checkReplaceable(hook);
  const { repo, service: url } = options;
  const settings = { url, token: readToken(options.tokenFile) };
  // First: where the hook cannot be written, no token stays behind.
  writeHook(hook, repo);
  writeSettings(folder, settings);
  takePushOptions(folder);
  if (options.json) printJson({ folder, repository: repo, url });
  else print(`Pushes to ${folder} are published as ${repo} to ${url}`);
}

/** The folder in which git looks for the hooks of the repository, which need not be there. */
function findHooks(folder: string): string {
  const hooks = resolve(folder, askForHooks(folder));
  if ([resolve(folder), realpathSync(folder)].some((root) => isWithin(root, hooks))) return hooks;
  const advice = `git --git-dir ${quote(folder)} config core.hooksPath hooks`;
  throw new Failure(
    'conflict',
    `Cannot install the hook: git runs the hooks in "${hooks}", outside of the repository (core.hooksPath); give it its own: ${advice}`,
  );
}

function askForHooks(folder: string): string {
  const argv = ['--git-dir=.', 'rev-parse', '--git-path', 'hooks'];
  try {
    return execFileSync('git', argv, { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).replace(/\n$/, '');
  } catch (error) {
    throw new Failure(
      'invalid',
      `Cannot install the hook: git does not tell the folder of hooks: ${describeError(error)}`,
    );
  }
}

function isWithin(root: string, folder: string): boolean {
  const path = relative(root, folder);
  return !isAbsolute(path) && path.split(sep)[0] !== '..';
}

function writeHook(hook: string, repository: string): void {
  const runLocal = existsSync(`${hook}${LOCAL}`) ? RUN_LOCAL_IF_EXECUTABLE : undefined;
  try {
    mkdirSync(dirname(hook), { recursive: true });
    writeFileSync(hook, createScript(createPublish(repository), runLocal));
    chmodSync(hook, 0o755);
  } catch (error) {
    throw new Failure('unavailable', `Cannot install the hook: ${describeError(error)}`);
  }
}

function writeSettings(folder: string, settings: ServiceAddress): void {
  const file = join(folder, SETTINGS_FILE);
  // An existing file may be readable for all, and writing it does not change its mode.
  if (existsSync(file)) chmodSync(file, 0o600);
  writeFileSync(file, `${JSON.stringify(settings)}\n`, { mode: 0o600 });
}

/** Sets the repository to accept push options, since git refuses a push with options otherwise. */
function takePushOptions(folder: string): void {
  try {
    execFileSync('git', ['--git-dir', folder, 'config', 'receive.advertisePushOptions', 'true'], { stdio: 'pipe' });
  } catch (error) {
    remark(`trivet: git push -o is refused until receive.advertisePushOptions is set: ${describeError(error)}`);
  }
}

/** A hook of the user's own has this suffix (`post-receive.local`), and runs after the events are published. */
const LOCAL = '.local';
const HOOK_COMMAND = 'git-hook post-receive';

function createPublish(repository: string): string {
  const words = [process.execPath, ...process.execArgv, resolve(process.argv[1] ?? '')];
  return `${words.map(quote).join(' ')} ${HOOK_COMMAND} --repo ${quote(repository)}`;
}

const GIVE_INPUT = String.raw`printf '%s\n' "$input"`;
/** Earlier versions wrote this, without the test for an executable file. */
const RUN_LOCAL = `${GIVE_INPUT} | "$0${LOCAL}"`;
/** Skips a local hook that is not executable, as git skips such a hook. */
const RUN_LOCAL_IF_EXECUTABLE = `[ ! -x "$0${LOCAL}" ] || ${RUN_LOCAL}`;

/** Each command of the script gets the whole input that git writes to the hook. */
function createScript(publish: string, runLocal?: string): string {
  const lines = runLocal === undefined ? [`exec ${publish}`] : ['input=$(cat)', `${GIVE_INPUT} | ${publish}`, runLocal];
  return `#!/bin/sh\n${lines.join('\n')}\n`;
}

/** Whether this command, in any version and for any repository, wrote the script, and no person has changed it since. */
function isOwnScript(script: string): boolean {
  const [, publish] =
    /^(?:exec|printf \S+ "\$input" \|) ('.*' git-hook post-receive --repo '\S*')$/m.exec(script) ?? [];
  if (publish === undefined) return false;
  return [undefined, RUN_LOCAL_IF_EXECUTABLE, RUN_LOCAL].some((runLocal) => script === createScript(publish, runLocal));
}

/** Throws `conflict` for a hook that this command did not write; its own script may be replaced. */
function checkReplaceable(hook: string): void {
  if (!existsSync(hook)) return;
  const script = readFileSync(hook, 'utf8');
  if (isOwnScript(script)) return;
  throw new Failure('conflict', `Cannot install the hook: "${hook}" ${proposeChange(script, hook)}, and install again`);
}

function proposeChange(script: string, hook: string): string {
  const local = `${hook}${LOCAL}`;
  if (script.includes(HOOK_COMMAND)) return `runs "${HOOK_COMMAND}" in its own way; take that line out`;
  if (existsSync(local)) return `exists; add it to "${local}", remove it`;
  return `exists; it can run too: mv ${quote(hook)} ${quote(local)}`;
}

function quote(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
