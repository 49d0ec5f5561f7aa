/** Writes a file so that it exists whole or not at all, even after a power cut. */
import { closeSync, fsyncSync, linkSync, openSync, rmSync, writeSync } from 'node:fs';
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
    // Unlike a rename, a link never takes the place of a file that another process made in the meantime.
    linkSync(temporary, path);
    syncFolder(dirname(path));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
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
