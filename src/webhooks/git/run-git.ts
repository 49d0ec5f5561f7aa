/** Runs git with a limit on time and output. */
import { spawn } from 'node:child_process';
import { Failure } from '../../errors.ts';

const TIMEOUT_MS = 60_000;
const MAX_TEXT_BYTES = 1024 * 1024;
const MAX_ERROR_BYTES = 4096;

export interface GitCall {
  readonly argv: readonly string[];
  /** Standard input of git, for long lists of references: the system limits the length of arguments. */
  readonly input?: string;
  /** Called with each part of the output; returns false to end git. */
  readonly onOutput: (chunk: Buffer) => boolean;
}

/**
 * Runs git in a repository. Resolves when git has ended or `onOutput` has ended it. Throws `unavailable` with git's own message when git
 * fails or takes longer than a minute. Never keeps more than one part of the output in memory.
 */
export type RunGit = (call: GitCall) => Promise<void>;

export function createGit(gitDir: string): RunGit {
  return (call) =>
    new Promise((resolve, reject) => {
      // Anyone who may push can push a reference below refs/replace, which would replace the commit of an id with another one.
      const argv = ['--git-dir=.', '--no-replace-objects', ...call.argv];
      const git = spawn('git', argv, { cwd: gitDir, timeout: TIMEOUT_MS });
      let hasEnough = false;
      let complaint = '';
      git.stdout.on('data', (chunk: Buffer) => {
        if (hasEnough || call.onOutput(chunk)) return;
        hasEnough = true;
        git.kill();
      });
      git.stderr.setEncoding('utf8').on('data', (text: string) => {
        if (complaint.length < MAX_ERROR_BYTES) complaint += text;
      });
      git.on('error', (error) => reject(describeFailure(call, error.message)));
      git.on('close', (exitCode, signal) => {
        if (exitCode === 0 || hasEnough) return resolve();
        const reason = complaint.trim() || (signal === null ? `exit code ${exitCode}` : `ended by ${signal}`);
        reject(describeFailure(call, reason, exitCode ?? undefined));
      });
      // Git may end before it has read all input. Its exit code and standard error then show the reason.
      git.stdin.on('error', () => {});
      git.stdin.end(call.input ?? '');
    });
}

function describeFailure({ argv }: GitCall, reason: string, exitCode?: number): Failure {
  return new Failure('unavailable', `Cannot run git ${argv[0] ?? ''}: ${reason.slice(0, MAX_ERROR_BYTES)}`, {
    exitCode,
  });
}

/** The output of git, its first MiB. */
export async function readGit(git: RunGit, argv: readonly string[], input?: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const onOutput = (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    return bytes < MAX_TEXT_BYTES;
  };
  await git({ argv, onOutput, ...(input !== undefined && { input }) });
  return Buffer.concat(chunks).subarray(0, MAX_TEXT_BYTES).toString('utf8');
}

/** Whether a git command that answers with its exit code succeeds. */
export async function askGit(git: RunGit, ...argv: readonly string[]): Promise<boolean> {
  try {
    await readGit(git, argv);
    return true;
  } catch (error) {
    if (error instanceof Failure && error.details.exitCode === 1) return false;
    throw error;
  }
}
