/** Copies a SQLite store into a file while the service runs (`trivet backup`). */
import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Failure } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import { giveName } from '../durable-file.ts';
import { hasFile } from '../has-file.ts';
import { describeSqliteError, isSqliteError } from '../sqlite/sqlite-connection.ts';

export interface Backup {
  readonly bytes: number;
}

/**
 * Copies a SQLite database as it is at this moment into a new file, compact and without a write-ahead log, while others read and
 * write. The file gets its name only when it is complete, checked and on the disk.
 */
export function backupSqlite(databaseFile: string, target: string): Backup {
  if (!hasFile(databaseFile)) throw new Failure('not_found', `Cannot back up: there is no database "${databaseFile}"`);
  if (hasFile(target)) throw new Failure('conflict', `Cannot back up: "${target}" exists already`);
  removeAbandonedDrafts(dirname(target));
  // A process id is not a unique name: a killed backup may have left its file, and in a container have had the same id.
  const temporary = `${target}.${realWorld.uuid()}${DRAFT}`;
  try {
    makeCopy(databaseFile, temporary);
    syncFile(temporary);
    giveName(temporary, target);
    return { bytes: statSync(target).size };
  } finally {
    rmSync(temporary, { force: true });
  }
}

const DRAFT = '.trivet-backup';
/** Matches drafts only: a finished backup may have the same suffix, but no UUID before it. */
const DRAFT_NAME = /\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.trivet-backup$/;
/** How old a draft must be to be deleted: a running backup writes to its draft more often. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;

/** Deletes drafts of killed backups, which may be as large as the database. */
function removeAbandonedDrafts(folder: string): void {
  const before = realWorld.nowMs() - ABANDONED_AFTER_MS;
  for (const name of listFolder(folder)) if (DRAFT_NAME.test(name)) removeOld(join(folder, name), before);
}

/** An old draft may belong to another user, which must not make the new backup fail. */
function removeOld(path: string, beforeMs: number): void {
  try {
    const stat = lstatSync(path);
    if (stat.isFile() && stat.mtimeMs < beforeMs) rmSync(path);
  } catch {}
}

/** A backup folder may be writable but not listable. */
function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function makeCopy(databaseFile: string, temporary: string): void {
  try {
    copyInto(databaseFile, temporary);
    checkCopy(temporary);
  } catch (cause) {
    if (!isSqliteError(cause)) throw cause;
    const message = `Cannot back up "${databaseFile}": ${describeSqliteError(cause)}`;
    throw new Failure('unavailable', message, {}, { cause });
  }
}

// The file is created first, so that others can never read it, not even while it is written.
function copyInto(databaseFile: string, temporary: string): void {
  closeSync(openSync(temporary, 'wx', 0o600));
  using database = new DatabaseSync(databaseFile, { timeout: 10_000 });
  checkRoom(database, databaseFile, dirname(temporary));
  database.prepare('VACUUM INTO ?1').run(temporary);
}

const MIB = 1_048_576;
/** Disk space for the write-ahead log of a service that writes meanwhile: none of it is reused while the copy is read. */
const ROOM_OF_LOG = 64 * MIB;

/** Checks the free space: a copy that fills the disk of the database would stop the writes of the service. */
function checkRoom(database: DatabaseSync, databaseFile: string, folder: string): void {
  const { blocks, bavail, bsize } = statfsSync(folder);
  // Some file systems do not report it.
  if (blocks === 0) return;
  const isSameDisk = statSync(folder).dev === statSync(databaseFile).dev;
  const needed = countUsedBytes(database) + (isSameDisk ? ROOM_OF_LOG : 0);
  const free = bavail * bsize;
  if (free >= needed) return;
  const need = `${Math.ceil(needed / MIB)} MiB${isSameDisk ? ' beside a service that writes' : ''}`;
  const room = `${Math.floor(free / MIB)} MiB are free in "${resolve(folder)}"`;
  throw new Failure(
    'unavailable',
    `Cannot back up: the copy needs ${need}, and ${room}; name a file on another disk, or make room`,
  );
}

/** The copy has no free pages. */
function countUsedBytes(database: DatabaseSync): number {
  const read = (name: string) => Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
  return (read('page_count') - read('freelist_count')) * read('page_size');
}

function checkCopy(path: string): void {
  using copy = new DatabaseSync(path);
  const [row] = copy.prepare('PRAGMA quick_check').all();
  if (row?.quick_check !== 'ok')
    throw new Failure('internal', `Cannot back up: the database is damaged: ${String(row?.quick_check)}`);
}

function syncFile(path: string): void {
  const file = openSync(path, 'r+');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
