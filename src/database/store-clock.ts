/** Gives all processes the time of the database's server, whatever their machines' clocks are. */
import type { World } from '../world.ts';
import type { Store } from './store.ts';

/** A world with the time of the database's server: the same for all processes on it, whatever their machines' clocks are. */
export function withStoreClock(world: World, store: Pick<Store, 'clockAheadMs'>): World {
  return { ...world, nowMs: () => world.nowMs() + store.clockAheadMs() };
}
