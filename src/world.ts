import { randomBytes, randomUUID } from 'node:crypto';
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
  /** Resolves after `ms`; rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const realWorld: World = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  random: () => Math.random(),
  randomBytes: (size) => randomBytes(size),
  uuid: () => randomUUID(),
  sleep: (ms, signal) => sleep(ms, undefined, signal ? { signal } : {}),
};
