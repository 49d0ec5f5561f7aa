/** Holds what was learned about a version that this process does not serve yet. */
import type { World } from '../../world.ts';
import type { ModelEntries } from './shared-group.ts';
import { isMeans } from './sum-groups.ts';

/** Processes serve a new version within a second or two of each other. */
const MAX_HELD_MS = 30_000;
const MAX_HELD = 50_000;

/** Keeps means of residuals that are relative to a version which this process does not serve yet. Bounded: the oldest are dropped. */
export interface EntriesOfUnservedVersions {
  hold(entries: ModelEntries): void;
  /** Returns the entries for this version, oldest first, and drops all others. */
  take(version: string): readonly ModelEntries[];
}

export function createEntriesOfUnservedVersions(world: Pick<World, 'monotonicMs'>): EntriesOfUnservedVersions {
  let held: (ModelEntries & { readonly heldAtMs: number })[] = [];
  const listFresh = () => held.filter(({ heldAtMs }) => world.monotonicMs() - heldAtMs <= MAX_HELD_MS);
  return {
    hold({ version, entries }) {
      const means = entries.filter(({ name }) => isMeans(name.kind));
      held = [...listFresh(), { version, entries: means, heldAtMs: world.monotonicMs() }];
      let count = held.reduce((sum, each) => sum + each.entries.length, 0);
      while (count > MAX_HELD) count -= held.shift()!.entries.length;
    },
    take(version) {
      const fresh = listFresh();
      held = [];
      return fresh.filter((each) => each.version === version);
    },
  };
}
