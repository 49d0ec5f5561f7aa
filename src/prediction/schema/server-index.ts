/** Numbers server addresses by their bytes, and forgets those that were not used for a long time. */
import { randomInt } from 'node:crypto';

/**
 * Maps server addresses to small numbers, by their bytes so that the hot path creates no string. When it is full
 * (`MAX_SERVERS` of `online/live-model.ts`), it forgets the half that was used longest ago.
 */
export interface ServerIndex {
  /** Returns -1 for an unknown server. */
  find(source: Uint8Array, start: number, length: number): number;
  /** Returns the number of this server, adds it if it is unknown, and marks it as used now. */
  ensure(address: Uint8Array): number;
  readonly capacity: number;
  readonly count: number;
  addressOf(server: number): Uint8Array | undefined;
  /** Calls the listener with the number of each forgotten server before another server gets it. Returns a function that ends this. */
  onForget(listener: (server: number) => void): () => void;
}

export function createServerIndex(capacity: number): ServerIndex {
  // The hash table is at most half full, so that probes are short.
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

/** Secret, so that a client that reports cannot choose addresses with colliding hashes. */
const SEED = randomInt(2 ** 32);

/** Hashes by FNV-1a from a secret seed, then by the finalizer of MurmurHash3, so that every bit of the seed reaches the low bits. */
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
