/** Keeps a pause between dispatch cycles, so that several deliveries gather. */
import type { World } from '../../../world.ts';

/** Returns a function that waits until this time after its last call has ended. */
export function createCyclePace(world: World): (everyMs: number) => Promise<void> {
  let lastMs = Number.NEGATIVE_INFINITY;
  return async (everyMs) => {
    const waitMs = lastMs + everyMs - world.monotonicMs();
    if (waitMs > 0) await world.sleep(waitMs);
    // Pending input and output get their turn in any case.
    else await new Promise(setImmediate);
    lastMs = world.monotonicMs();
  };
}
