/** Raises a notice to administrators when the disk of the data folder is almost full, and when it has room again. */
import { statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Notice, NoticeSource } from './notice.ts';
import type { NoticeTexts } from './texts.ts';

const MIB = 1024 * 1024;
/** The same limit as in `trivet doctor`. */
const FEW_MIB = 1024;
/** Room again: enough more than the limit that a disk which fills slowly does not cause a notice every hour. */
const ROOM_MIB = 1280;

export type ReadFreeBytes = (folder: string) => Promise<number>;

const readFreeBytes: ReadFreeBytes = async (folder) => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

export function createDiskSource(folder: string, readFree: ReadFreeBytes = readFreeBytes): NoticeSource {
  const host = hostname();
  const cause = `disk:${host}:${folder}`;
  const readFreeMib = async () => Math.floor((await readFree(folder)) / MIB);
  const toNotice = (state: 'full' | 'fine', freeMib: number): Notice => ({
    cause,
    state,
    audience: { kind: 'administrators' },
    write: ({ disk }: NoticeTexts) => disk[state](host, folder, freeMib),
  });
  return {
    prefix: cause,
    async listTroubles() {
      const freeMib = await readFreeMib();
      return freeMib < FEW_MIB ? [toNotice('full', freeMib)] : [];
    },
    async findRecovery(open) {
      // A folder whose path begins like this one is watched by a process of its own.
      if (open !== cause) return 'not yet';
      const freeMib = await readFreeMib();
      return freeMib < ROOM_MIB ? 'not yet' : toNotice('fine', freeMib);
    },
  };
}
