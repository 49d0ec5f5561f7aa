/** Locks a spool, so that only one process sends it. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describeError, Failure } from '../../errors.ts';

const SQLITE_BUSY = 5;

/** Takes a lock of the operating system, which ends with the process. Undefined while another process has it. */
export function lockFile(folder: string, name: string): Disposable | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, name);
  const database = openLock(file);
  try {
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return { [Symbol.dispose]: () => database.close() };
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw refuseLock(file, error);
  }
}

function openLock(file: string): DatabaseSync {
  try {
    return new DatabaseSync(file, { timeout: 0 });
  } catch (error) {
    throw refuseLock(file, error);
  }
}

function refuseLock(file: string, cause: unknown): Failure {
  return new Failure('unavailable', `Cannot lock the spool with "${file}": ${describeError(cause)}`, {}, { cause });
}
