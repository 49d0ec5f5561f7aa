import { randomBytes, randomFillSync, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

/** Clock, randomness and ids: what tests hold still. Nothing else in the program reads them. */
export interface World {
  /** Milliseconds since the epoch. */
  nowMs(): number;
  /** Monotonic milliseconds, for durations. */
  monotonicMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
  randomBytes(size: number): Uint8Array;
  uuid(): string;
  /** A positive integer below 2^53, rising with time: milliseconds and 12 bits that keep two in one millisecond apart. */
  id(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** 2025-01-01: 41 bits of milliseconds from here last until 2094. */
const ID_EPOCH_MS = 1_735_689_600_000;
const IDS_PER_MS = 4096;

/** Smaller than every id made at that time or later, larger than those before. */
export function idAtMs(nowMs: number): number {
  return (nowMs - ID_EPOCH_MS) * IDS_PER_MS;
}

/** Rising ids from a clock. Two processes can, rarely, make the same one: a unique index decides, the caller tries again. */
export function createIdSource(nowMs: () => number, random: () => number): () => number {
  let last = 0;
  return () => {
    const fresh = (nowMs() - ID_EPOCH_MS) * IDS_PER_MS + Math.floor(random() * IDS_PER_MS);
    last = Math.max(fresh, last + 1);
    return last;
  };
}

const POOL_BYTES = 8192;

/**
 * Random bytes out of a pool that is filled at once, as `randomUUID` does it: asking the system for every 16 bytes costs
 * more than most of what they are for. What was handed out is wiped from the pool.
 */
export function createRandomSource(): (size: number) => Uint8Array {
  const pool = new Uint8Array(POOL_BYTES);
  let usedBytes = POOL_BYTES;
  return (size) => {
    if (size > POOL_BYTES / 8) return randomBytes(size);
    if (usedBytes + size > POOL_BYTES) {
      randomFillSync(pool);
      usedBytes = 0;
    }
    const bytes = pool.slice(usedBytes, usedBytes + size);
    pool.fill(0, usedBytes, usedBytes + size);
    usedBytes += size;
    return bytes;
  };
}

export const realWorld: World = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  random: () => Math.random(),
  randomBytes: createRandomSource(),
  uuid: () => randomUUID(),
  id: createIdSource(Date.now, Math.random),
  sleep: (ms, signal) => sleep(ms, undefined, signal ? { signal } : {}),
};
