/** Writes a file atomically: it exists complete or not at all, even after a power cut. */
import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Writes a new file that exists complete or not at all, also after a power cut, and is readable by its owner only.
 * Returns false, and changes nothing, when a file of that name exists.
 */
export function createDurableFile(path: string, content: string | Uint8Array): boolean {
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  try {
    writeDurably(temporary, content);
    giveName(temporary, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Writes a file, or replaces it. After a power cut, either the former or the new file is there, complete. */
export function replaceDurableFile(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  try {
    writeDurably(temporary, content);
    renameSync(temporary, path);
    syncFolder(dirname(path));
  } finally {
    rmSync(temporary, { force: true });
  }
}

export function removeDurably(path: string): void {
  rmSync(path, { force: true });
  syncFolder(dirname(path));
}

/**
 * Gives a file that is on the disk its final name, durably. Throws EEXIST when a file of that name exists. The temporary name may
 * stay.
 */
export function giveName(temporary: string, path: string): void {
  try {
    // Unlike a rename, a link never takes the place of a file that another process made in the meantime.
    linkSync(temporary, path);
  } catch (error) {
    if (!CODES_WITHOUT_LINKS.has((error as NodeJS.ErrnoException).code)) throw error;
    claimAndRename(temporary, path);
  }
  syncFolder(dirname(path));
}

/** File systems without hard links (FAT, exFAT, some network and FUSE file systems) refuse a link with one of these. */
const CODES_WITHOUT_LINKS: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

/** Reserves the name with an empty file, which keeps other processes from it until it is replaced. */
function claimAndRename(temporary: string, path: string): void {
  closeSync(openSync(path, 'wx', 0o600));
  try {
    renameSync(temporary, path);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

function writeDurably(path: string, content: string | Uint8Array): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, typeof content === 'string' ? Buffer.from(content) : content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Makes files that were created or renamed in the folder durable. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
