/** Logs when the leases of shards have lapsed, since nothing is sent then, and when they are held again. */
import type { Log } from '../../../telemetry/log.ts';
import type { World } from '../../../world.ts';

/**
 * Returns a function that is called in every cycle with whether the leases of shards are held. It logs one line when they have lapsed
 * and one when they are held again. Leases that were never held have not lapsed.
 */
export function createLapseLog({ world, log }: { readonly world: Pick<World, 'monotonicMs'>; readonly log: Log }) {
  let wereHeld = false;
  let lapsedMs: number | undefined;
  return (areHeld: boolean): void => {
    if (areHeld && lapsedMs !== undefined) {
      const seconds = Math.round((world.monotonicMs() - lapsedMs) / 1000);
      log.warn({ seconds }, 'The leases of shards are renewed; deliveries go on');
      lapsedMs = undefined;
    }
    if (!areHeld && wereHeld) {
      lapsedMs = world.monotonicMs();
      log.warn('The leases of shards lapsed before they were renewed; no delivery is sent until they are');
    }
    wereHeld = areHeld;
  };
}
