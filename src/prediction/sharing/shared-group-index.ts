/** Finds the shared groups of one live model by name or event. A group is added when it first changes. */
import type { LearningState, LiveModel } from '../online/live-model.ts';
import type { ServerKey } from '../online/residual-tracker.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { createSharedGroup, resetGroup, type SharedGroup } from './shared-group.ts';
import { type GroupName, isMeans, openGroup } from './sum-groups.ts';

export interface ObservedEvent {
  readonly key: ServerKey;
  readonly podType: string;
  readonly target: PredictionTarget;
}

export interface SharedGroupIndex {
  find(name: GroupName): SharedGroup | undefined;
  ensure(name: GroupName): SharedGroup;
  /** The groups that an event changes. */
  listOfEvent(event: ObservedEvent): readonly SharedGroup[];
  /** Must be called when the predictions of a target change (a new version or prior), since its mean residuals then begin again. */
  resetMeans(target: PredictionTarget): void;
  /** Must be called when the index is no longer used: the listeners of the live model would keep it in memory. */
  close(): void;
}

/** The most cached lists of groups, since reports may name any pod type. Dropped lists are made again. */
export const MAX_EVENT_KEYS = 65_536;

/** `onRemove` is called with each group of a server that is forgotten, or of a slot that is closed. */
export function createSharedGroupIndex(
  { learning, servers }: LiveModel,
  onRemove: (group: SharedGroup) => void,
): SharedGroupIndex {
  const groups = new Map<string, SharedGroup>();
  const means: Record<PredictionTarget, Set<SharedGroup>> = { ttft: new Set(), tpot: new Set() };
  const ofServers = new Map<string, Set<SharedGroup>>();
  const ofEvents = new Map<string, readonly SharedGroup[]>();
  const stopForgetting = servers.onForget((server) => {
    const address = addressOf(learning, server);
    removeAll(ofServers.get(address) ?? []);
    ofServers.delete(address);
  });
  const stopClosing = learning.onCloseSlots((slots) =>
    removeAll(groups.values().filter(({ name }) => !isMeans(name.kind) && slots.has(name.slot ?? ''))),
  );

  function removeAll(removed: Iterable<SharedGroup>): void {
    ofEvents.clear();
    for (const each of removed) {
      groups.delete(keyOf(each.name));
      ofServers.get(each.name.server)?.delete(each);
      means[each.name.target].delete(each);
      onRemove(each);
    }
  }

  function ensure(name: GroupName): SharedGroup {
    const key = keyOf(name);
    const known = groups.get(key);
    if (known !== undefined) return known;
    const each = createSharedGroup(name, openGroup(learning, name));
    groups.set(key, each);
    if (isMeans(name.kind)) means[name.target].add(each);
    if (name.server !== '') ofServers.set(name.server, (ofServers.get(name.server) ?? new Set()).add(each));
    return each;
  }

  return {
    find: (name) => groups.get(keyOf(name)),
    ensure,
    listOfEvent(event) {
      const { key, podType, target } = event;
      const eventKey = `${target} ${key.server} ${podType}`;
      const known = ofEvents.get(eventKey);
      if (known !== undefined) return known;
      if (ofEvents.size >= MAX_EVENT_KEYS) ofEvents.clear();
      const moved = nameGroups(learning, event).map(ensure);
      ofEvents.set(eventKey, moved);
      return moved;
    },
    resetMeans(target) {
      ofEvents.clear();
      for (const each of means[target]) onRemove(resetGroup(each));
    },
    close() {
      stopForgetting();
      stopClosing();
    },
  };
}

function keyOf({ kind, target, slot, server }: GroupName): string {
  return JSON.stringify([kind, target, slot, server]);
}

function addressOf({ tracker }: LearningState, server: number): string {
  return Buffer.from(tracker.servers.addressOf(server) ?? []).toString();
}

function nameModelMeans({ target }: ObservedEvent): GroupName {
  return { kind: 'model means', target, slot: null, server: '' };
}

function namePodTypeMeans({ key, podType, target }: ObservedEvent): GroupName {
  return { kind: 'pod type means', target, slot: key.podType === 0 ? null : normalizePodType(podType), server: '' };
}

function nameServerMeans(learning: LearningState, { key, target }: ObservedEvent): GroupName {
  return { kind: 'server means', target, slot: null, server: addressOf(learning, key.server) };
}

/** The means that these events of one target change, each with the number of its events. */
export function* countEventsOfMeans(
  learning: LearningState,
  events: readonly ObservedEvent[],
): Generator<readonly [means: GroupName, events: number]> {
  if (events[0] !== undefined) yield [nameModelMeans(events[0]), events.length];
  for (const [, ofPodType] of Map.groupBy(events, ({ key }) => key.podType))
    yield [namePodTypeMeans(ofPodType[0]!), ofPodType.length];
  for (const [server, ofServer] of Map.groupBy(events, ({ key }) => key.server))
    if (server !== -1) yield [nameServerMeans(learning, ofServer[0]!), ofServer.length];
}

function nameGroups(learning: LearningState, event: ObservedEvent): GroupName[] {
  const { key, podType, target } = event;
  const slot = learning.slotKeyOf(podType);
  const common: GroupName[] = [
    nameModelMeans(event),
    namePodTypeMeans(event),
    { kind: 'slot', target, slot, server: '' },
  ];
  if (key.server === -1) return common;
  const means = nameServerMeans(learning, event);
  return [...common, means, { kind: 'server', target, slot, server: means.server }];
}
