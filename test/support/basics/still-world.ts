import { randomBytes, randomUUID } from 'node:crypto';
import type { World } from '../../../src/world.ts';

/** A world whose clock stands still until a test moves it. */
export interface StillWorld extends World {
  moveMs(ms: number): void;
}

export function createStillWorld(startMs = Date.UTC(2026, 0, 15, 12)): StillWorld {
  let nowMs = startMs;
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    random: () => 0.5,
    randomBytes: (size) => randomBytes(size),
    uuid: () => randomUUID(),
    sleep: () => Promise.resolve(),
    moveMs: (ms) => {
      nowMs += ms;
    },
  };
}
