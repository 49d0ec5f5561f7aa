/**
 * Shares one live model among processes, as groups of sums. `take` returns what this process has observed and the others do not
 * know yet. `apply` adds the entries of a row to the bases, in the same order in all processes, and keeps events that are in no
 * row yet on top. Calls to Predict are not involved: they read the served sums.
 */
import type { World } from '../../world.ts';
import type { LiveModel } from '../online/live-model.ts';
import type { RecentRow } from '../online/recent-rows.ts';
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
  /** Must be called before the live model is saved: after a swap, its means are those of the former version until then. */
  followSwap(): void;
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
  const means = createMeansStart({ live, groups, pending });
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
      means.begin(target, unserved.take(target, basis));
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
      means.onTake();
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
      if (!isOwn) means.beforeOthers(entries.filter(({ name }) => isMeans(name.kind) && counts(name)));
      for (const [i, entry] of entries.entries()) {
        if (counts(entry.name)) applyEntry(entry, isOwn);
        if (i % ENTRIES_AT_ONCE === ENTRIES_AT_ONCE - 1) yield;
      }
    },
    reweigh: () => reweighServers(live),
    countPending: () => pending.count(),
    followSwap: () => followSwap(),
    findBase: (name) => groups.find(name)?.base,
    close: () => groups.close(),
  };
}

function* reweighServers({ learning }: LiveModel): Generator<void> {
  for (const slot of learning.slots.values())
    for (const target of PREDICTION_TARGETS) yield* slot[target].weights.reweighServers();
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

/**
 * Begins means with recent rows after a swap. Processes that restored the same state have the same rows of it: these are left out
 * where the means of another process come before this one has taken its own.
 */
function createMeansStart({ live, groups, pending }: SharedParts) {
  /** The targets whose means have rows of a restored state, and were not taken since. */
  const withRestored = new Set<PredictionTarget>();

  function begin(target: PredictionTarget, isChosen: (row: RecentRow) => boolean): void {
    groups.resetMeans(target);
    withRestored.delete(target);
    const rows = live.learning.recent.list().filter((row) => row.target === target && isChosen(row));
    for (const [name, events] of countEventsOfMeans(live.learning, rows)) {
      const means = groups.ensure(name);
      addReplayed(means, events);
      pending.add(means);
    }
    if (rows.some(({ isRestored }) => isRestored)) withRestored.add(target);
  }

  function leaveOutRestored(target: PredictionTarget): void {
    live.learning.replayOwn(target);
    begin(target, ({ isRestored }) => !isRestored);
  }

  return {
    /** `held` are the entries that other processes have shared before. */
    begin(target: PredictionTarget, held: readonly GroupEntry[]): void {
      if (held.length > 0) leaveOutRestored(target);
      else begin(target, () => true);
      for (const entry of held) mergeEntryOfOther(groups.ensure(entry.name), entry);
    },
    /** Must be called before these means of another process are merged. */
    beforeOthers(entries: readonly GroupEntry[]): void {
      for (const target of withRestored)
        if (entries.some(({ name }) => name.target === target)) leaveOutRestored(target);
    },
    /** Must be called before means are taken. */
    onTake: () => withRestored.clear(),
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
