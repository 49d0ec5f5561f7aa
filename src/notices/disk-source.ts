/** Notifies administrators when the disk of the embedded database is almost full, and when it has space again. */
import { statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Notice, NoticeSource } from './notice.ts';
import type { NoticeTexts } from './texts.ts';

const MIB = 1024 * 1024;
/** The same limit as in `trivet doctor`. */
const FEW_MIB = 1024;
/** The free space that ends the trouble: above the limit, so that a disk near the limit does not cause a notice every hour. */
const ROOM_MIB = 1280;

/** Facts of the machine that the process runs on. */
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

/** The source for a database on a server. An open notice about a disk is from the former database, and ends without another notice. */
export const NO_DISK_SOURCE: NoticeSource = {
  prefix: PREFIX,
  listTroubles: async () => [],
  findRecovery: async () => undefined,
};

/**
 * The source for the data folder of an embedded database, which one process uses. The cause has no host name: a container gets
 * another one with each start, while the trouble is the same.
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
      // A cause of another folder or host is from before the database moved: it ends when this disk has space.
      const freeMib = await readFreeMib();
      return freeMib < ROOM_MIB ? 'not yet' : toNotice(cause, 'fine', freeMib);
    },
  };
}
