import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Failure } from '../../errors.ts';
import { describeSqliteError } from '../sqlite/sqlite-connection.ts';
import { ensureDataDir } from './data-dir.ts';

export interface DataDirLock {
  [Symbol.dispose](): void;
}

/**
 * Keeps a second service away from the folder. Commands need no lock: the database serializes their writes. The lock is
 * SQLite's on a small file of its own, so the system lets it go with the process, however that ends.
 */
export function lockDataDir(dataDir: string): DataDirLock {
  ensureDataDir(dataDir);
  const pidFile = join(dataDir, 'serve.pid');
  const database = lockFile(join(dataDir, 'serve.lock'), pidFile);
  writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  let isHeld = true;
  return {
    [Symbol.dispose]: () => {
      if (!isHeld) return;
      isHeld = false;
      rmSync(pidFile, { force: true });
      database.close();
    },
  };
}

function lockFile(path: string, pidFile: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: 0 });
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    throw refuse(error, path, pidFile);
  }
}

const BUSY = 5;

function refuse(cause: unknown, path: string, pidFile: string): Failure {
  if ((cause as { errcode?: number }).errcode !== BUSY)
    return new Failure('unavailable', `Cannot lock "${path}": ${describeSqliteError(cause)}`, {}, { cause });
  const message = `Cannot start: the data folder "${dirname(path)}" is in use by another trivet${describeHolder(pidFile)}`;
  return new Failure('conflict', message, {}, { cause });
}

// The holder writes its number after it has the lock, so for a moment it may be absent.
function describeHolder(pidFile: string): string {
  try {
    return ` (process ${readFileSync(pidFile, 'utf8').trim()})`;
  } catch {
    return '';
  }
}
