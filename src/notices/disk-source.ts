/** Notices to administrators when the disk of the data folder is almost full. */
import { statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { NoticeSource } from './notice.ts';
import type { NoticeTexts } from './texts.ts';

const MIB = 1024 * 1024;
/** The same limit as in `trivet doctor`. */
const FEW_MIB = 1024;

export type ReadFreeBytes = (folder: string) => Promise<number>;

const readFreeBytes: ReadFreeBytes = async (folder) => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

export function createDiskSource(folder: string, readFree: ReadFreeBytes = readFreeBytes): NoticeSource {
  const host = hostname();
  const cause = `disk:${host}:${folder}`;
  return {
    prefix: cause,
    async listTroubles() {
      const freeMib = Math.floor((await readFree(folder)) / MIB);
      if (freeMib >= FEW_MIB) return [];
      const write = ({ disk }: NoticeTexts) => disk.full(host, folder, freeMib);
      return [{ cause, state: 'full', audience: { kind: 'administrators' }, write }];
    },
    findRecovery: () => Promise.resolve(undefined),
  };
}
