/**
 * Refuses to serve a SQLite store whose rows were copied to PostgreSQL. A service that is started without DATABASE_URL would
 * serve it silently, so a file beside it refuses that until a person decides.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Failure } from '../../errors.ts';
import { hasFile } from '../has-file.ts';

const MARKER_FILE = 'trivet.moved';

/** `target` must not hold a password. */
export function markCopied(dataDir: string, target: string, nowMs: number): string {
  const file = markerOf(dataDir);
  writeFileSync(file, `Copied to ${target} at ${new Date(nowMs).toISOString()}.\n`, { mode: 0o600 });
  return file;
}

/** Throws `conflict` when the store in the folder was copied to another database. */
export function checkNotCopied(dataDir: string): void {
  const file = markerOf(dataDir);
  if (!hasFile(file)) return;
  throw new Failure(
    'conflict',
    `Cannot use the database in "${resolve(dataDir)}": it was moved. ${readFileSync(file, 'utf8').trim()} ` +
      `Set DATABASE_URL to use the copy, or delete "${file}" to use this old database again`,
  );
}

function markerOf(dataDir: string): string {
  return join(resolve(dataDir), MARKER_FILE);
}
