/** Supplies time, randomness and ids, which tests replace with fixed values. */
import { randomBytes, randomFillSync, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Clock and randomness, which tests replace. Only timeouts, measured durations, commands, and random names that no test reads may use
 * those of Node directly.
 */
export interface World {
  /** Milliseconds since the epoch. */
  nowMs(): number;
  /** Monotonic milliseconds, for durations. */
  monotonicMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
  randomBytes(size: number): Uint8Array;
  uuid(): string;
  /** Resolves after `ms`; rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

const POOL_BYTES = 8192;

/**
 * Returns random bytes from a pool that is filled at once, as `randomUUID` does: a system call for every 16 bytes costs more than
 * most of their uses. Returned bytes are wiped from the pool.
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
  sleep: (ms, signal) => sleep(ms, undefined, signal ? { signal } : {}),
};
