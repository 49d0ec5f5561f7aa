/**
 * Chooses the folder for the databases of tests: in memory if there is room, since a run creates hundreds of thousands of short-lived
 * small files, for which a disk takes twice the processor time. No program runs from there: the folder may be mounted `noexec`.
 */
import { accessSync, chmodSync, constants, mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
/** The databases of a run fill less than half of it. */
const MIN_BYTES = 8 * 2 ** 30;

/** Creates the folder in memory for one run, usable by every account; undefined where databases should be on a disk. */
export function makeMemoryFolder(): string | undefined {
  if (!hasRoom()) return undefined;
  const folder = mkdtempSync(join(MEMORY, 'trivet-tests-'));
  // The PostgreSQL server has another account.
  chmodSync(folder, 0o1777);
  return folder;
}

function hasRoom(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return Math.min(bavail * bsize, process.availableMemory()) >= MIN_BYTES;
  } catch {
    return false;
  }
}

/** Creates a folder, which the test removes. */
export function makeDataFolder(prefix: string): string {
  return mkdtempSync(join(process.env.TRIVET_TEST_DATA ?? tmpdir(), prefix));
}
