/** Locks a file for one process. The lock is SQLite's, so the system releases it when the process ends, however it ends. */
import { DatabaseSync } from 'node:sqlite';

const BUSY = 5;

/** Returns undefined while another process has the lock. Throws when the file cannot be created or written. */
export function tryLockFile(path: string): Disposable | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: 0 });
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    const locked = database;
    return { [Symbol.dispose]: () => locked.close() };
  } catch (error) {
    database?.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

export function isBusy(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === BUSY;
}
