/**
 * Where databases of tests lie: in memory where there is room, since a run makes hundreds of thousands of small files that are soon
 * gone, and a disk takes twice the processor time for them. Nothing is run from there: such a folder may be mounted `noexec`.
 */
import { accessSync, chmodSync, constants, mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
/** The databases of a run fill less than half of it. */
const MIN_BYTES = 8 * 2 ** 30;

/** For the databases of one run, of whatever account; nothing where they should lie on a disk. */
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

/** A new folder; its test removes it. */
export function makeDataFolder(prefix: string): string {
  return mkdtempSync(join(process.env.TRIVET_TEST_DATA ?? tmpdir(), prefix));
}
