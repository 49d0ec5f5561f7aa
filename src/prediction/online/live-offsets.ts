/** Looks up the offset of a server by its number. */
import { readServerOffset, type ServerOffsets } from '../model/server-offsets.ts';
import type { ServerIndex } from '../schema/server-index.ts';

/** Server offsets of one pod type by server number, so that an address is converted to text only once. */
export interface LiveOffsets {
  /** -1, an unknown server, has the offset of the pod type. */
  read(server: number): number;
  /** Adds to each of the first `count` logarithms of factors the offset of its server. */
  addTo(logFactors: Float64Array, servers: Int32Array, count: number): void;
  /** Must be called before this number is given to another server. */
  forget(server: number): void;
}

export function createLiveOffsets(learned: ServerOffsets, podType: string, index: ServerIndex): LiveOffsets {
  const { servers, podTypes } = learned;
  const common = podTypes.get(podType) ?? 0;
  const isFlat = servers.size === 0;
  const offsets = new Float64Array(isFlat ? 0 : index.capacity).fill(Number.NaN);

  function read(server: number): number {
    if (isFlat || server === -1) return common;
    const known = offsets[server]!;
    if (!Number.isNaN(known)) return known;
    const address = index.addressOf(server);
    offsets[server] =
      address === undefined ? common : readServerOffset(learned, Buffer.from(address).toString(), podType);
    return offsets[server]!;
  }

  return {
    read,
    addTo(logFactors, rowServers, count) {
      if (isFlat && common === 0) return;
      for (let n = 0; n < count; n++) logFactors[n]! += read(rowServers[n]!);
    },
    forget(server) {
      if (!isFlat) offsets[server] = Number.NaN;
    },
  };
}

/** The offset of each row's server, as an input of the trees. */
export interface OffsetColumn {
  /** The returned array is valid until the next call. */
  fill(servers: Int32Array, count: number): Float32Array;
  forget(server: number): void;
}

export function createOffsetColumn(learned: ServerOffsets, podType: string, index: ServerIndex): OffsetColumn {
  const offsets = createLiveOffsets(learned, podType, index);
  let column = new Float32Array(0);
  return {
    fill(servers, count) {
      if (column.length < count) column = new Float32Array(servers.length);
      for (let n = 0; n < count; n++) column[n] = offsets.read(servers[n]!);
      return column;
    },
    forget: (server) => offsets.forget(server),
  };
}

/** Registers servers with an offset, so that they have it from the first call on. A full index keeps the servers that reported. */
export function registerServers({ servers }: ServerOffsets, index: ServerIndex): void {
  for (const address of servers.keys()) {
    if (index.count >= index.capacity) return;
    index.ensure(Buffer.from(address));
  }
}
