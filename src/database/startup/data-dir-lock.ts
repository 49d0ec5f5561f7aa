/** Locks the data folder, so that two programs never serve from it. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Failure } from '../../errors.ts';
import { describeSqliteError } from '../sqlite/sqlite-connection.ts';
import { ensureDataDir } from './data-dir.ts';
import { isBusy, tryLockFile } from './file-lock.ts';

export interface DataDirLock {
  /** Records the ids of the keys of this service, the current one first, for commands that encrypt beside it. */
  recordKeys(keyIds: readonly number[]): void;
  [Symbol.dispose](): void;
}

const LOCK_FILE = 'serve.lock';
/** The file with the process id and, in a second line, the ids of its keys. A killed process leaves it behind. */
const PID_FILE = 'serve.pid';

/**
 * Keeps a second service away from the folder. Commands need no lock: the database serializes their writes. The lock is on a
 * separate small file.
 */
export function lockDataDir(dataDir: string): DataDirLock {
  ensureDataDir(dataDir);
  const pidFile = join(dataDir, PID_FILE);
  const lock = lockFile(join(dataDir, LOCK_FILE), pidFile);
  const note = `${process.pid}\n`;
  writeFileSync(pidFile, note, { mode: 0o600 });
  let isHeld = true;
  return {
    recordKeys: (keyIds) => writeFileSync(pidFile, `${note}${keyIds.join(' ')}\n`),
    [Symbol.dispose]: () => {
      if (!isHeld) return;
      isHeld = false;
      rmSync(pidFile, { force: true });
      lock[Symbol.dispose]();
    },
  };
}

function lockFile(path: string, pidFile: string): Disposable {
  let lock: Disposable | undefined;
  try {
    lock = tryLockFile(path);
  } catch (cause) {
    throw new Failure('unavailable', `Cannot lock "${path}": ${describeSqliteError(cause)}`, {}, { cause });
  }
  if (lock !== undefined) return lock;
  const message = `Cannot use the data folder "${dirname(path)}": it is in use by another trivet${describeHolder(pidFile)}`;
  throw new Failure('conflict', message);
}

/** Returns the ids of the keys of this folder's service, the current one first; empty while it starts, undefined while none runs. */
export function findServiceKeys(dataDir: string): readonly number[] | undefined {
  if (!isLocked(join(dataDir, LOCK_FILE))) return undefined;
  const [, ids = ''] = readNote(join(dataDir, PID_FILE));
  return ids.split(' ').filter(Boolean).map(Number);
}

function isLocked(path: string): boolean {
  if (!existsSync(path)) return false;
  const database = new DatabaseSync(path, { readOnly: true, timeout: 0 });
  try {
    database.exec('SELECT COUNT(*) FROM sqlite_master');
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    database.close();
  }
}

function describeHolder(pidFile: string): string {
  const [processId] = readNote(pidFile);
  return processId ? ` (process ${processId})` : '';
}

/** Reads its lines. The holder writes them after it has the lock, so for a moment the file may be empty. */
function readNote(pidFile: string): readonly string[] {
  try {
    return readFileSync(pidFile, 'utf8').split('\n');
  } catch {
    return [];
  }
}
