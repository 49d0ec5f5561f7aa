/** Writes a file so that it exists whole or not at all, even after a power cut. */
import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Writes a new file that is there as a whole or not at all, also after a power cut, readable by its owner alone.
 * False when there is one of that name already, which is then left as it is.
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

/** Writes a file, in the place of the former one of that name. After a power cut the former or the new one is there as a whole. */
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
 * Gives a file that is on the disk its name, which survives a power cut then. Throws EEXIST when there is one of that name. The
 * temporary name may stay.
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

/** The empty file keeps the name from other processes until it is replaced. */
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

/** Makes what was created or renamed in the folder durable. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
