/** The command line as a user runs it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface TrivetRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export async function runTrivet(
  argv: readonly string[],
  options: {
    readonly env?: Readonly<Record<string, string>>;
    readonly input?: string;
    /** The folder of the program; this repository unless given. */
    readonly folder?: string | undefined;
  } = {},
): Promise<TrivetRun> {
  const child = spawn(process.execPath, ['src/cli/trivet.ts', ...argv], {
    cwd: options.folder,
    env: { ...process.env, ...options.env },
  });
  const collected = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    collected.stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    collected.stderr += chunk;
  });
  child.stdin.end(options.input ?? '');
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...collected };
}
