/** Numbers server addresses by their bytes, and forgets those that were not used for long. */
import { randomInt } from 'node:crypto';

/**
 * Server addresses → small numbers, found by their bytes so that the hot path makes no string. Bounded: when it is
 * full (`MAX_SERVERS` of `online/live-model.ts`), the half that was used longest ago is forgotten.
 */
export interface ServerIndex {
  /** -1 when it is not known. */
  find(source: Uint8Array, start: number, length: number): number;
  /** The number of this server, a new one if need be; marks it as used now. */
  ensure(address: Uint8Array): number;
  readonly capacity: number;
  readonly count: number;
  addressOf(server: number): Uint8Array | undefined;
  /** Calls the listener with every number whose server is forgotten, before the number is given to another server. Returns what ends that. */
  onForget(listener: (server: number) => void): () => void;
}

export function createServerIndex(capacity: number): ServerIndex {
  // The table is at most half full, so that probes are short.
  const slotCount = 2 ** Math.ceil(Math.log2(2 * capacity));
  const slots = new Int32Array(slotCount).fill(-1);
  const addresses: (Uint8Array | undefined)[] = Array.from({ length: capacity });
  const usedAt = new Float64Array(capacity);
  const free = Array.from({ length: capacity }, (_, i) => capacity - 1 - i);
  const listeners = new Set<(server: number) => void>();
  let clock = 0;

  function find(source: Uint8Array, start: number, length: number): number {
    for (let slot = hashBytes(source, start, length) & (slotCount - 1); ; slot = (slot + 1) & (slotCount - 1)) {
      const server = slots[slot]!;
      if (server === -1 || isSame(addresses[server]!, source, start, length)) return server;
    }
  }

  function place(server: number): void {
    const address = addresses[server]!;
    let slot = hashBytes(address, 0, address.length) & (slotCount - 1);
    while (slots[slot] !== -1) slot = (slot + 1) & (slotCount - 1);
    slots[slot] = server;
  }

  function forgetOldHalf(): void {
    const middle = Float64Array.from(usedAt).sort()[capacity >> 1]!;
    for (let server = 0; server < capacity; server++) {
      if (usedAt[server]! > middle || addresses[server] === undefined) continue;
      for (const listener of listeners) listener(server);
      addresses[server] = undefined;
      free.push(server);
    }
    slots.fill(-1);
    for (let server = 0; server < capacity; server++) if (addresses[server] !== undefined) place(server);
  }

  return {
    capacity,
    get count() {
      return capacity - free.length;
    },
    find,
    addressOf: (server) => addresses[server],
    onForget(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    ensure(address) {
      let server = find(address, 0, address.length);
      if (server === -1) {
        if (free.length === 0) forgetOldHalf();
        server = free.pop()!;
        addresses[server] = address.slice();
        place(server);
      }
      usedAt[server] = ++clock;
      return server;
    },
  };
}

/** Secret to this process: a client that reports cannot choose addresses that share one slot. */
const SEED = randomInt(2 ** 32);

/** FNV-1a from a secret start, then the finaliser of MurmurHash3: every bit of the start reaches the low bits. */
function hashBytes(source: Uint8Array, start: number, length: number): number {
  let hash = SEED;
  for (let i = start; i < start + length; i++) hash = Math.imul(hash ^ source[i]!, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function isSame(address: Uint8Array, source: Uint8Array, start: number, length: number): boolean {
  if (address.length !== length) return false;
  for (let i = 0; i < length; i++) if (address[i] !== source[start + i]) return false;
  return true;
}
