import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Failure } from '../errors.ts';
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
  const database = new DatabaseSync(join(dataDir, 'serve.lock'), { timeout: 0 });
  try {
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    throw refuse(error, dataDir, pidFile);
  }
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

const BUSY = 5;

function refuse(error: unknown, dataDir: string, pidFile: string): unknown {
  if ((error as { errcode?: number }).errcode !== BUSY) return error;
  const message = `Cannot start: the data folder "${dataDir}" is in use by another trivet${describeHolder(pidFile)}`;
  return new Failure('conflict', message, {}, { cause: error });
}

// The holder writes its number after it has the lock, so for a moment it may be absent.
function describeHolder(pidFile: string): string {
  try {
    return ` (process ${readFileSync(pidFile, 'utf8').trim()})`;
  } catch {
    return '';
  }
}
