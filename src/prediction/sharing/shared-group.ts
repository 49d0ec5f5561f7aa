/**
 * Merges one group of sums: the base that all processes agree on, and this process's own events. The events on top are those
 * that are not in the base yet. Both together are served. docs/how-it-works/prediction.md ("Many processes as one") has an
 * example with numbers.
 */
import {
  type AddedEvents,
  addEvents,
  addWithin,
  appendResiduals,
  decaySums,
  type EventCount,
  type GroupName,
  newestResiduals,
  type Residuals,
  type SumGroup,
} from './sum-groups.ts';

/** The amounts that events of one process add to one group. */
export interface GroupEntry extends AddedEvents {
  readonly name: GroupName;
  readonly sums: Float32Array;
  readonly residuals: Residuals | undefined;
}

/** The amounts that events of one process add to a model. Mean residuals apply to this version of it only. */
export interface ModelEntries {
  readonly version: string;
  readonly entries: readonly GroupEntry[];
}

export interface GroupBase {
  readonly sums: Float64Array;
  readonly residuals: Residuals | undefined;
}

export interface SharedGroup {
  readonly name: GroupName;
  readonly group: SumGroup;
  /** Undefined while no event is on top of it: the base is served then. */
  base: GroupBase | undefined;
  /** Events on top of the base, in this process's row of the log that it has not applied yet. */
  sent: EventCount;
  /** Events on top of the base that are in no row yet. */
  unsent: EventCount;
}

const NO_EVENTS: EventCount = { events: 0, certainty: 0 };

export function createSharedGroup(name: GroupName, group: SumGroup): SharedGroup {
  return { name, group, base: undefined, sent: NO_EVENTS, unsent: NO_EVENTS };
}

/** Must be called when the served sums are cleared: no event is on top of them any more. */
export function resetGroup(shared: SharedGroup): SharedGroup {
  return Object.assign(shared, { base: undefined, sent: NO_EVENTS, unsent: NO_EVENTS });
}

/** Must be called before an event of this certainty changes the served sums. */
export function addObserved(shared: SharedGroup, certainty: number): void {
  shared.base ??= readBase(shared.group);
  shared.unsent = sumCounts(shared.unsent, { events: 1, certainty });
}

/** Must be called for events that were replayed after the served sums were cleared. They count fully. */
export function addReplayed(shared: SharedGroup, events: number): void {
  shared.base ??= emptyBase(shared.group);
  shared.unsent = sumCounts(shared.unsent, { events, certainty: events });
}

function sumCounts(a: EventCount, b: EventCount): EventCount {
  return { events: a.events + b.events, certainty: a.certainty + b.certainty };
}

function readBase(group: SumGroup): GroupBase {
  return { sums: group.read(), residuals: group.residuals?.read() };
}

function emptyBase(group: SumGroup): GroupBase {
  return { sums: new Float64Array(group.decays.length), residuals: undefined };
}

/** A sum of certainties is rounded to this fraction: few digits in the row, and no visible error in predictions. */
const CERTAINTY_UNITS = 1e6;

/**
 * Returns the entry for the log, with the amounts that the unsent events have added: the served sums minus the decayed base. Must
 * not be called while an earlier entry is in `sent`.
 */
export function takeEntry(shared: SharedGroup): GroupEntry {
  const { group, name } = shared;
  const { events } = shared.unsent;
  // Rounded before the sums are computed, so that they match the number that other processes read.
  const count = { events, certainty: Math.round(shared.unsent.certainty * CERTAINTY_UNITS) / CERTAINTY_UNITS };
  const kept = decaySums(group, shared.base!.sums, count);
  const sums = Float32Array.from(group.read(), (value, c) => value - kept[c]!);
  const residuals = group.residuals && newestResiduals(group.residuals.read(), events);
  shared.sent = count;
  shared.unsent = NO_EVENTS;
  return { name, ...count, sums, residuals };
}

/** Adds an entry of this process to the base. With no other event on top, the base is what is served. */
export function mergeOwnEntry(shared: SharedGroup, entry: GroupEntry): void {
  const { group } = shared;
  const { sums, residuals } = shared.base!;
  const base = {
    sums: addEvents(group, sums, entry),
    residuals: residuals && entry.residuals && appendResiduals(residuals, entry.residuals),
  };
  shared.sent = NO_EVENTS;
  shared.base = shared.unsent.events > 0 ? base : undefined;
  if (shared.base !== undefined) return;
  group.write(base.sums, 0);
  if (base.residuals !== undefined) group.residuals?.write(base.residuals, 0);
}

/** Adds an entry of another process to the base. Events on top of the base count as later, so they decay the added amounts. */
export function mergeEntryOfOther(shared: SharedGroup, entry: GroupEntry): void {
  const { group } = shared;
  const served = group.read();
  const before = shared.base?.sums ?? served;
  const after = addEvents(group, before, entry);
  const onTop = sumCounts(shared.sent, shared.unsent);
  const risen = after.map((value, c) => value - before[c]!);
  const moved = decaySums(group, risen, onTop);
  group.write(shared.base === undefined ? after : addWithin(group, served, moved), entry.events);
  const residuals = addResidualsBelow(shared, entry);
  if (shared.base !== undefined) shared.base = { sums: after, residuals };
}

function addResidualsBelow({ group, base, unsent, sent }: SharedGroup, entry: GroupEntry): Residuals | undefined {
  if (group.residuals === undefined || entry.residuals === undefined) return undefined;
  const served = group.residuals.read();
  const after = appendResiduals(base?.residuals ?? served, entry.residuals);
  group.residuals.write(appendResiduals(after, newestResiduals(served, unsent.events + sent.events)), entry.events);
  return after;
}
