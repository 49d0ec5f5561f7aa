/** Gives all processes the time of the database's server, whatever the clocks of their machines show. */
import type { World } from '../world.ts';
import type { Store } from './store.ts';

export function withStoreClock(world: World, store: Pick<Store, 'clockAheadMs'>): World {
  return { ...world, nowMs: () => world.nowMs() + store.clockAheadMs() };
}
