/**
 * Shares one live model among processes, as groups of sums. `take` returns what this process has observed and the others do not
 * know yet. `apply` adds the entries of a row to the bases, in the same order in all processes, and keeps events that are in no
 * row yet on top. Calls to Predict are not involved: they read the served sums.
 */
import type { World } from '../../world.ts';
import type { LiveModel } from '../online/live-model.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
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
import {
  countEventsOfMeans,
  createSharedGroupIndex,
  type ObservedEvent,
  type SharedGroupIndex,
} from './shared-group-index.ts';
import { type GroupName, isMeans } from './sum-groups.ts';

export interface SharedModel {
  /** Must be called before the live model observes a time of this certainty. */
  beforeObserve(event: ObservedEvent, certainty: number): void;
  /**
   * Takes the events that were observed here and not taken before, of at most `limit` groups. Returns one element for each
   * version that mean residuals are relative to; both targets have the same one unless a prior answers one of them. A group is
   * taken again only after its last entry was applied.
   */
  take(limit: number): ModelEntries[];
  /** `isOwn`: the entries were taken in this process. Runs in steps, between which calls may be answered. */
  apply(entries: ModelEntries, isOwn: boolean): Iterable<void>;
  /** Must be called after entries were applied: the weights of servers depend on the losses of their slots too. */
  reweigh(): Iterable<void>;
  /** How many groups have events that other processes do not know yet. */
  countPending(): number;
  /** The base of a group, if events of this process are on top of it. */
  findBase(name: GroupName): GroupBase | undefined;
  /** Must be called when the shared model is replaced by another one of the same live model. */
  close(): void;
}

const ENTRIES_AT_ONCE = 128;

export function createSharedModel(live: LiveModel, world: Pick<World, 'monotonicMs'>): SharedModel {
  const pending = createPendingGroups();
  const groups = createSharedGroupIndex(live, (each) => pending.remove(each));
  const unserved = createEntriesOfUnservedVersions(world);
  const followed = { ttft: live.learning.basisOf('ttft'), tpot: live.learning.basisOf('tpot') };

  /**
   * After a swap, the means of targets whose predictions changed begin again. With a thousand servers, those of one target take
   * about 2 ms.
   */
  function followSwap(targets = PREDICTION_TARGETS): void {
    for (const target of targets) {
      const basis = live.learning.basisOf(target);
      if (basis === followed[target]) continue;
      followed[target] = basis;
      beginMeans({ live, groups, pending }, target, unserved.take(target, basis));
    }
  }

  function applyEntry(entry: GroupEntry, isOwn: boolean): void {
    const each = groups.ensure(entry.name);
    if (isOwn && each.sent.events > 0) mergeOwnEntry(each, entry);
    else mergeEntryOfOther(each, entry);
    if (!isOwn) countOthers(live, each, entry.events);
    if (each.base === undefined) pending.remove(each);
  }

  return {
    beforeObserve(event, certainty) {
      followSwap([event.target]);
      for (const each of groups.listOfEvent(event)) {
        addObserved(each, certainty);
        pending.add(each);
      }
    },
    take(limit) {
      followSwap();
      const byVersion = Map.groupBy(pending.takeEntries(limit), ({ name }) => followed[name.target]);
      return [...byVersion].map(([version, entries]) => ({ version, entries }));
    },
    *apply(added, isOwn) {
      followSwap();
      const { entries, version } = added;
      // Decided once: means that are held are merged by the swap to their version, which may come between two steps.
      const served = PREDICTION_TARGETS.filter((target) => followed[target] === version);
      if (!isOwn) unserved.hold({ version, entries: entries.filter(({ name }) => !served.includes(name.target)) });
      const counts = ({ kind, target }: GroupName): boolean =>
        !isMeans(kind) || (served.includes(target) && live.learning.basisOf(target) === version);
      for (const [i, entry] of entries.entries()) {
        if (counts(entry.name)) applyEntry(entry, isOwn);
        if (i % ENTRIES_AT_ONCE === ENTRIES_AT_ONCE - 1) yield;
      }
    },
    *reweigh() {
      for (const slot of live.learning.slots.values())
        for (const target of PREDICTION_TARGETS) yield* slot[target].weights.reweighServers();
    },
    countPending: () => pending.count(),
    findBase: (name) => groups.find(name)?.base,
    close: () => groups.close(),
  };
}

/**
 * Counts times that another process observed at a server. Entries of means are not counted, since they may be of times that the
 * process replayed.
 */
function countOthers({ learning, servers }: LiveModel, { name, sent, unsent }: SharedGroup, events: number): void {
  if (name.kind !== 'server') return;
  const address = Buffer.from(name.server);
  const owner = { server: servers.find(address, 0, address.length), target: name.target };
  learning.recent.countOthers(owner, { events, later: sent.events + unsent.events });
}

interface SharedParts {
  readonly live: LiveModel;
  readonly groups: SharedGroupIndex;
  readonly pending: ReturnType<typeof createPendingGroups>;
}

/** Begins the means of a target with recent rows of this process, and with entries of others that were held. */
function beginMeans(parts: SharedParts, target: PredictionTarget, held: readonly GroupEntry[]): void {
  const { groups, live, pending } = parts;
  groups.resetMeans(target);
  // Processes that restored the same state have the same rows: they are in the entries of the one that served the version first.
  const isFirst = held.length === 0;
  if (!isFirst) live.learning.replayOwn(target);
  const rows = live.learning.recent.list().filter((row) => row.target === target && (isFirst || !row.isRestored));
  for (const [name, events] of countEventsOfMeans(live.learning, rows)) {
    const means = groups.ensure(name);
    addReplayed(means, events);
    pending.add(means);
  }
  for (const entry of held) mergeEntryOfOther(groups.ensure(entry.name), entry);
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
