import type { World } from '../world.ts';

/** A world whose clock never goes back: when the machine's does, what had expired stays expired. */
export function withRisingClock(world: World): World {
  let latestMs = 0;
  return {
    ...world,
    nowMs: () => {
      latestMs = Math.max(latestMs, world.nowMs());
      return latestMs;
    },
  };
}
