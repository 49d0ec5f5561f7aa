/**
 * Checks out the program of an older commit of this repository into a new folder, with the packages of its lock file.
 * The commit is fixed: the version that operators upgrade from must not move with the branch.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** The last commit before the tables of events, of llm-d and of server histories changed. */
export const RELEASED_COMMIT = 'c260f9b';

const PACKAGES_WITHIN_MS = 240_000;

export interface ReleasedProgram extends Disposable {
  readonly folder: string;
}

export function checkOutReleasedProgram(): ReleasedProgram {
  ensureCommit();
  const folder = mkdtempSync(join(tmpdir(), 'trivet-released-'));
  const archive = git('archive', RELEASED_COMMIT, 'src', 'bin', 'proto', 'package.json', 'package-lock.json');
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  installPackages(folder);
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

/** A clone may be shallow, so the commit is fetched when it is missing. */
function ensureCommit(): void {
  if (hasCommit()) return;
  try {
    git('fetch', '--quiet', ...(isShallow() ? ['--unshallow'] : []), 'origin');
  } catch {
    // The message below names what is missing.
  }
  if (!hasCommit())
    throw new Error(
      `The commit ${RELEASED_COMMIT}, the release to upgrade from, is not in this clone and could not be fetched. ` +
        'Clone with the whole history (git fetch --unshallow)',
    );
}

function hasCommit(): boolean {
  try {
    git('cat-file', '-e', `${RELEASED_COMMIT}^{commit}`);
    return true;
  } catch {
    return false;
  }
}

function isShallow(): boolean {
  return git('rev-parse', '--is-shallow-repository').toString().trim() === 'true';
}

function git(...args: string[]): Buffer {
  return execFileSync('git', args, { stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 256 * 1024 * 1024 });
}

/** Links today's packages if both lock files are the same, and installs the packages otherwise. */
function installPackages(folder: string): void {
  const [then, now] = [join(folder, 'package-lock.json'), 'package-lock.json'].map((path) =>
    readFileSync(path, 'utf8'),
  );
  if (then === now && existsSync('node_modules')) {
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    return;
  }
  const argv = ['ci', '--omit=dev', '--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts'];
  execFileSync('npm', argv, { cwd: folder, stdio: 'pipe', timeout: PACKAGES_WITHIN_MS });
}
