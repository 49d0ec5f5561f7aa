/** Runs the service of the demo, and the commands that a user would type. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { print } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';

export interface Stage {
  /** Temporary; holds the store and the files of the demonstration. */
  readonly folder: string;
  readonly httpUrl: string;
  readonly grpcAddress: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborted to stop the demonstration; running commands then end. */
  readonly signal: AbortSignal;
}

const TRIVET = fileURLToPath(new URL('../trivet.ts', import.meta.url));
/** A package below node_modules is started with a loader that strips types; its child processes need the loader too. */
const NODE_OPTIONS = process.execArgv;

export function printStep(title: string): void {
  print(`\n── ${title}`);
}

/** Runs a command as a user would, and prints the command and its output; returns the output. */
export async function runShown(stage: Stage, argv: readonly string[], input?: string): Promise<string> {
  print(`$ ${['trivet', ...argv].map(quote).join(' ')}`);
  return show(await run(stage, process.execPath, [...NODE_OPTIONS, TRIVET, ...argv], input));
}

/** Does the same for git, whose standard error is printed too. */
export async function runGitShown(stage: Stage, argv: readonly string[]): Promise<string> {
  print(`$ ${['git', ...argv].map(quote).join(' ')}`);
  return show(await run(stage, 'git', [...GIT_PERSON, ...argv]));
}

export async function runGit(stage: Stage, argv: readonly string[]): Promise<void> {
  await run(stage, 'git', [...GIT_PERSON, ...argv]);
}

/** Starts a command that runs until the caller ends it. */
export function startTrivet(stage: Stage, argv: readonly string[]): ChildProcessByStdio<null, Readable, Readable> {
  print(`$ ${['trivet', ...argv].map(quote).join(' ')} &`);
  return spawn(process.execPath, [...NODE_OPTIONS, TRIVET, ...argv], {
    env: stage.environment,
    cwd: stage.folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

const GIT_PERSON = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', '-c', 'init.defaultBranch=main'];

async function run(stage: Stage, file: string, argv: readonly string[], input?: string): Promise<string> {
  const child = spawn(file, argv, {
    env: stage.environment,
    cwd: stage.folder,
    stdio: ['pipe', 'pipe', 'pipe'],
    signal: stage.signal,
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  // A command that reads no input may have ended before its input is closed.
  child.stdin.on('error', () => {}).end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Failure('internal', `Cannot go on: ${file} ${argv.join(' ')} failed:\n${errors}${output}`);
  return output;
}

function show(output: string): string {
  if (output.trim() !== '') print(indent(output.trimEnd()));
  return output;
}

function quote(argument: string): string {
  return /^[\w./:@=+-]+$/.test(argument) ? argument : `'${argument}'`;
}

export function indent(text: string): string {
  return text.replace(/^/gm, '  ');
}
