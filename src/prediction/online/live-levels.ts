import { readServerOffset, type ServerOffsets } from '../model/server-offsets.ts';
import type { ServerIndex } from '../schema/server-index.ts';
import type { AskedRows } from './asked-rows.ts';

/** The levels of one pod type by the numbers of its servers: no string is made of an address that was asked before. */
export interface LiveLevels {
  /** Of a server's number; -1 has the level of the pod type. */
  read(server: number): number;
  /** Fills the levels of the first `count` servers. */
  fill(servers: Int32Array, into: Float32Array, count: number): void;
  /** Adds to the logarithm of each row that of its server. */
  add(asked: AskedRows): void;
  /** This number means another server from now on. */
  forget(server: number): void;
}

export function createLiveLevels(learned: ServerOffsets, podType: string, index: ServerIndex): LiveLevels {
  const { servers, podTypes } = learned;
  const common = podTypes.get(podType) ?? 0;
  const isFlat = servers.size === 0;
  const levels = new Float64Array(isFlat ? 0 : index.capacity).fill(Number.NaN);

  function read(server: number): number {
    if (isFlat || server === -1) return common;
    const known = levels[server]!;
    if (!Number.isNaN(known)) return known;
    const address = index.addressOf(server);
    levels[server] =
      address === undefined ? common : readServerOffset(learned, Buffer.from(address).toString(), podType);
    return levels[server]!;
  }

  return {
    read,
    fill(servers, into, count) {
      for (let n = 0; n < count; n++) into[n] = read(servers[n]!);
    },
    add({ count, servers: asked, logs }) {
      if (isFlat && common === 0) return;
      for (let n = 0; n < count; n++) logs[n]! += read(asked[n]!);
    },
    forget(server) {
      if (!isFlat) levels[server] = Number.NaN;
    },
  };
}

/** Levels as they are asked for here, each made when it is first asked. */
export interface LiveLevelsCache {
  of(levels: ServerOffsets): LiveLevels;
  forget(server: number): void;
  clear(): void;
}

export function createLiveLevelsCache(podType: string, index: ServerIndex): LiveLevelsCache {
  const cache = new Map<ServerOffsets, LiveLevels>();
  return {
    of(levels) {
      const known = cache.get(levels) ?? createLiveLevels(levels, podType, index);
      cache.set(levels, known);
      return known;
    },
    forget(server) {
      for (const levels of cache.values()) levels.forget(server);
    },
    clear: () => cache.clear(),
  };
}

/** So that a server has its level from the first call on. Not more than there is room for: others were heard of later. */
export function introduceServers({ servers }: ServerOffsets, index: ServerIndex): void {
  for (const address of servers.keys()) {
    if (index.count >= index.capacity) return;
    index.ensure(Buffer.from(address));
  }
}
