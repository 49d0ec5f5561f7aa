import { execFile } from 'node:child_process';
import { Failure } from '../../errors.ts';

const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

/** Runs git in a repository and returns what it wrote. Throws `unavailable` with git's own words when it fails. */
export type RunGit = (...argv: readonly string[]) => Promise<string>;

export function createGit(gitDir: string): RunGit {
  return (...argv) =>
    new Promise((resolve, reject) => {
      const options = { cwd: gitDir, maxBuffer: MAX_OUTPUT_BYTES, timeout: TIMEOUT_MS };
      execFile('git', ['--git-dir=.', ...argv], options, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else
          reject(
            new Failure('unavailable', `Cannot run git ${argv[0] ?? ''}: ${stderr.trim() || error.message}`, {
              exitCode: error.code,
            }),
          );
      });
    });
}

/** For questions that git answers with its exit code. */
export async function askGit(git: RunGit, ...argv: readonly string[]): Promise<boolean> {
  try {
    await git(...argv);
    return true;
  } catch (error) {
    if (error instanceof Failure && error.details.exitCode === 1) return false;
    throw error;
  }
}
