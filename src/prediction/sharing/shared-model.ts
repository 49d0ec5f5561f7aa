/**
 * Shares one live model among processes, as groups of sums. `take` returns what this process has observed and the others do not
 * know. `apply` changes the bases by the entries of a row, in the same order in all processes, and keeps on top what is in no
 * row yet. Calls to Predict are not involved: they read what is served.
 */
import type { World } from '../../world.ts';
import type { LiveModel } from '../online/live-model.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { createEntriesOfUnservedVersions } from './entries-of-unserved-versions.ts';
import {
  addObserved,
  addReplayed,
  type GroupBase,
  type GroupEntry,
  type ModelEntries,
  mergeEntryOfOther,
  mergeOwnEntry,
  type SharedGroup,
  takeEntry,
} from './shared-group.ts';
import { createSharedGroupIndex, type ObservedEvent } from './shared-group-index.ts';
import { type GroupName, isMeans } from './sum-groups.ts';

export interface SharedModel {
  /** Must be called before the live model observes a time of this certainty. */
  beforeObserve(event: ObservedEvent, certainty: number): void;
  /** Takes what was observed here and not taken before, of at most `limit` groups. A group is taken again only when its last entry is applied. */
  take(limit: number): ModelEntries | undefined;
  /** `isOwn`: the entries were taken in this process. Runs in steps, between which calls may be answered. */
  apply(entries: ModelEntries, isOwn: boolean): Iterable<void>;
  /** Must be called after entries were applied: the weights of servers depend on the losses of their slots too. */
  reweigh(): Iterable<void>;
  /** How many groups have events that other processes do not know yet. */
  countPending(): number;
  /** The base of a group, if events of this process are on top of it. */
  findBase(name: GroupName): GroupBase | undefined;
}

const ENTRIES_AT_ONCE = 128;
  /** Must be called when the shared model is replaced by another one of the same live model. */
  close(): void;

export function createSharedModel(live: LiveModel, world: Pick<World, 'monotonicMs'>): SharedModel {
  const pending = createPendingGroups();
  const groups = createSharedGroupIndex(live, (each) => pending.remove(each));
  const unserved = createEntriesOfUnservedVersions(world);
  let version = live.learning.basis;

  /** After a swap of the version: its means begin with the recent rows of this process, and with entries that were held for it. */
  function followSwap(): void {
    if (live.learning.basis === version) return;
    version = live.learning.basis;
    groups.removeMeans();
    const held = unserved.take(version);
    // Processes that restored the same state have the same rows: they are in the entries of the one that served the version first.
    const isFirst = held.length === 0;
    if (!isFirst) live.learning.replayOwn();
    const replayed = live.learning.recent.list().filter(({ isRestored }) => isFirst || !isRestored);
    for (const row of replayed)
      for (const each of groups.listOfEvent(row))
        if (isMeans(each.name.kind)) {
          addReplayed(each);
          pending.add(each);
        }
    for (const { entries } of held) for (const entry of entries) mergeEntryOfOther(groups.ensure(entry.name), entry);
  }

  function applyEntry(entry: GroupEntry, isOwn: boolean): void {
    const each = groups.ensure(entry.name);
    if (isOwn && each.sent.events > 0) mergeOwnEntry(each, entry);
    else mergeEntryOfOther(each, entry);
    if (each.base === undefined) pending.remove(each);
  }

  return {
    beforeObserve(event, certainty) {
      followSwap();
      for (const each of groups.listOfEvent(event)) {
        addObserved(each, certainty);
        pending.add(each);
      }
    },
    take(limit) {
      followSwap();
      const entries = pending.takeEntries(limit);
      return entries.length === 0 ? undefined : { version, entries };
    },
    *apply(added, isOwn) {
      followSwap();
      const isServed = added.version === version;
      if (!isServed && !isOwn) unserved.hold(added);
      for (const [i, entry] of added.entries.entries()) {
        if (isServed || !isMeans(entry.name.kind)) applyEntry(entry, isOwn);
        if (i % ENTRIES_AT_ONCE === ENTRIES_AT_ONCE - 1) yield;
      }
    },
    close: () => groups.close(),
    *reweigh() {
      for (const slot of live.learning.slots.values())
        for (const target of PREDICTION_TARGETS) yield* slot[target].weights.reweighServers();
    },
    countPending: () => pending.count(),
    findBase: (name) => groups.find(name)?.base,
  };
}

/** The groups with events on top of their base, in the order in which they got the first of these. */
function createPendingGroups() {
  const groups = new Set<SharedGroup>();
  return {
    count: () => groups.size,
    add: (each: SharedGroup) => void groups.add(each),
    remove: (each: SharedGroup) => void groups.delete(each),
    /** The unsent events of at most `limit` groups, without those whose last entry is not applied yet. */
    takeEntries(limit: number): GroupEntry[] {
      const entries: GroupEntry[] = [];
      for (const each of groups) {
        if (entries.length >= limit) break;
        if (each.unsent.events > 0 && each.sent.events === 0) entries.push(takeEntry(each));
      }
      return entries;
    },
  };
}
