/** Where the demonstration plays: the running service, and a way to run the commands that a user would type. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Failure } from '../../errors.ts';
import { print } from '../output.ts';

export interface Stage {
  /** Temporary; holds the store and the files of the demonstration. */
  readonly folder: string;
  readonly httpUrl: string;
  readonly grpcAddress: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const TRIVET = fileURLToPath(new URL('../trivet.ts', import.meta.url));
/** A package below node_modules is started with a loader for its types; its children need it too. */
const NODE_OPTIONS = process.execArgv;

export function printStep(title: string): void {
  print(`\n── ${title}`);
}

/** Runs a command as a user would, showing it and what it prints; returns its output. */
export async function runShown(stage: Stage, argv: readonly string[], input = ''): Promise<string> {
  print(`$ trivet ${argv.map(quote).join(' ')}`);
  const output = await runQuietly(stage, argv, input);
  print(indent(output.trimEnd()));
  return output;
}

export async function runQuietly(stage: Stage, argv: readonly string[], input = ''): Promise<string> {
  const child = spawn(process.execPath, [...NODE_OPTIONS, TRIVET, ...argv], {
    env: stage.environment,
    cwd: stage.folder,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Failure('internal', `Cannot go on: trivet ${argv.join(' ')} failed:\n${errors}${output}`);
  return output;
}

function quote(argument: string): string {
  return /^[\w./:@=+-]+$/.test(argument) ? argument : `'${argument}'`;
}

export function indent(text: string): string {
  return text.replace(/^/gm, '  ');
}
