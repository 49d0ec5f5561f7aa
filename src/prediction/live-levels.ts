import type { AskedRows } from './asked-rows.ts';
import type { ServerIndex } from './server-index.ts';
import { levelOf, type ServerLevels } from './server-levels.ts';

/** The levels of one pod type by the numbers of its servers: no string is made of an address that was asked before. */
export interface LiveLevels {
  /** Of a server's number; -1 has the level of the pod type. */
  read(server: number): number;
  /** Adds to the logarithm of each row that of its server. */
  add(asked: AskedRows): void;
  /** This number means another server from now on. */
  forget(server: number): void;
}

export function createLiveLevels(learned: ServerLevels, podType: string, index: ServerIndex): LiveLevels {
  const { servers, podTypes } = learned;
  const common = podTypes.get(podType) ?? 0;
  const isFlat = servers.size === 0;
  const levels = new Float64Array(isFlat ? 0 : index.capacity).fill(Number.NaN);

  function read(server: number): number {
    if (isFlat || server === -1) return common;
    const known = levels[server]!;
    if (!Number.isNaN(known)) return known;
    const address = index.addressOf(server);
    levels[server] = address === undefined ? common : levelOf(learned, Buffer.from(address).toString(), podType);
    return levels[server]!;
  }

  return {
    read,
    add({ count, servers: asked, logs }) {
      if (isFlat && common === 0) return;
      for (let n = 0; n < count; n++) logs[n]! += read(asked[n]!);
    },
    forget(server) {
      if (!isFlat) levels[server] = Number.NaN;
    },
  };
}

/** So that a server has its level from the first call on. Not more than there is room for: others were heard of later. */
export function introduceServers({ servers }: ServerLevels, index: ServerIndex): void {
  for (const address of servers.keys()) {
    if (index.count >= index.capacity) return;
    index.ensure(Buffer.from(address));
  }
}
