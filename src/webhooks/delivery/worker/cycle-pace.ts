/** Waits between dispatch cycles, so that deliveries are handled in batches. */
import type { World } from '../../../world.ts';

/** Returns a function that waits until `everyMs` after the end of its last call. */
export function createCyclePace(world: World): (everyMs: number) => Promise<void> {
  let lastMs = Number.NEGATIVE_INFINITY;
  return async (everyMs) => {
    const waitMs = lastMs + everyMs - world.monotonicMs();
    if (waitMs > 0) await world.sleep(waitMs);
    // Even without a wait, pending input and output are handled between two cycles.
    else await new Promise(setImmediate);
    lastMs = world.monotonicMs();
  };
}
