/** Holds mean residuals that other processes share for a version that this process does not serve yet. */
import type { World } from '../../world.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';
import type { GroupEntry, ModelEntries } from './shared-group.ts';
import { isMeans } from './sum-groups.ts';

/** Processes serve a new version within a second or two of each other. */
const MAX_HELD_MS = 30_000;
const MAX_HELD = 50_000;

/** Keeps means of residuals that are relative to a version which this process does not serve yet. Bounded: the oldest are dropped. */
export interface EntriesOfUnservedVersions {
  hold(entries: ModelEntries): void;
  /** Returns the entries of a target for this version, oldest first, and drops all others of the target. */
  take(target: PredictionTarget, version: string): readonly GroupEntry[];
}

interface HeldEntries extends ModelEntries {
  readonly target: PredictionTarget;
  readonly heldAtMs: number;
}

export function createEntriesOfUnservedVersions(world: Pick<World, 'monotonicMs'>): EntriesOfUnservedVersions {
  let held: HeldEntries[] = [];
  const listFresh = () => held.filter(({ heldAtMs }) => world.monotonicMs() - heldAtMs <= MAX_HELD_MS);
  return {
    hold({ version, entries }) {
      const means = entries.filter(({ name }) => isMeans(name.kind));
      const byTarget = Map.groupBy(means, ({ name }) => name.target);
      const heldAtMs = world.monotonicMs();
      held = [...listFresh(), ...[...byTarget].map(([target, each]) => ({ version, target, entries: each, heldAtMs }))];
      let count = held.reduce((sum, each) => sum + each.entries.length, 0);
      while (count > MAX_HELD) count -= held.shift()!.entries.length;
    },
    take(target, version) {
      const fresh = listFresh();
      held = fresh.filter((each) => each.target !== target);
      return fresh.flatMap((each) => (each.target === target && each.version === version ? each.entries : []));
    },
  };
}
