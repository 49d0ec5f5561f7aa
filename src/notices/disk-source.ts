/** Raises a notice to administrators when the disk of the embedded database is almost full, and when it has room again. */
import { statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Notice, NoticeSource } from './notice.ts';
import type { NoticeTexts } from './texts.ts';

const MIB = 1024 * 1024;
/** The same limit as in `trivet doctor`. */
const FEW_MIB = 1024;
/** Room again: higher than the limit, so that a disk near the limit does not cause a notice every hour. */
const ROOM_MIB = 1280;

/** Values of the machine that the process runs on. */
interface DiskReadings {
  readonly host: string;
  readonly readFreeBytes: (folder: string) => Promise<number>;
}

const OF_THIS_MACHINE: DiskReadings = {
  host: hostname(),
  readFreeBytes: async (folder) => {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  },
};

const PREFIX = 'disk:';

/** For a database on a server. A notice of a disk was sent where the database was before, and is over without another notice. */
export const NO_DISK_SOURCE: NoticeSource = {
  prefix: PREFIX,
  listTroubles: async () => [],
  findRecovery: async () => undefined,
};

/**
 * For the data folder of an embedded database, which one process uses. The cause has no host: a container has another name after
 * each start, and its trouble is the same.
 */
export function createDiskSource(folder: string, { host, readFreeBytes } = OF_THIS_MACHINE): NoticeSource {
  const readFreeMib = async () => Math.floor((await readFreeBytes(folder)) / MIB);
  const toNotice = (cause: string, state: 'full' | 'fine', freeMib: number): Notice => ({
    cause,
    state,
    audience: { kind: 'administrators' },
    write: ({ disk }: NoticeTexts) => disk[state](host, folder, freeMib),
  });
  return {
    prefix: PREFIX,
    async listTroubles() {
      const freeMib = await readFreeMib();
      return freeMib < FEW_MIB ? [toNotice(PREFIX + folder, 'full', freeMib)] : [];
    },
    async findRecovery(cause) {
      // A cause of another folder or host is from before the database moved: it ends when this disk has room.
      const freeMib = await readFreeMib();
      return freeMib < ROOM_MIB ? 'not yet' : toNotice(cause, 'fine', freeMib);
    },
  };
}
