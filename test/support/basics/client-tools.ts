/** The tools that the example clients are built and run with, as Debian packages them. */
import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';

/** Why a test that needs these programs is skipped; false if they are installed, and in CI, which must have them. */
export function skipWithout(
  packages: string,
  ...programs: readonly (readonly [program: string, ...args: string[]])[]
): string | false {
  const isThere = programs.every(([program, ...args]) => spawnSync(program, args).status === 0);
  return isThere || process.env.CI === 'true' ? false : `not installed: ${packages}`;
}

/**
 * Returns what a tool prints. It does not block: the program under test writes its log to this process, and would stop at a full
 * pipe. A tool that fails rejects, with its output as `stdout` and `stderr`.
 */
export async function readTool(
  cwd: string,
  [program, ...args]: readonly [program: string, ...args: string[]],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const env = { ...process.env, ...environment };
  return await promisify(execFile)(program, args, { cwd, env, encoding: 'utf8' });
}

/** As `readTool`; returns the standard output alone. */
export async function runTool(...parameters: Parameters<typeof readTool>): Promise<string> {
  return (await readTool(...parameters)).stdout;
}
