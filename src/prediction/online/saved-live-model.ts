/** What a live model has learned from reports, taken out for a restart and put back. */

import type { Target } from '../schema/observation-table.ts';
import { numberOfPodType } from '../schema/pod-type.ts';
import type { LiveTarget, SavedServerTarget, SavedTarget } from './live-target.ts';
import type { RecentRow, RecentRows } from './recent-rows.ts';
import type { SavedMeans, SavedServerState, ServerState } from './server-state.ts';

export interface SavedLiveModel {
  readonly podTypes: readonly string[];
  readonly state: SavedServerState;
  readonly recent: readonly SavedRow[];
  readonly slots: readonly SavedSlot<SavedTarget>[];
  /** Made one by one, as they are asked for: there may be thousands. */
  readonly servers: Iterable<SavedServer>;
}

export interface SavedServer {
  readonly address: string;
  readonly means: SavedMeans;
  readonly slots: readonly SavedSlot<SavedServerTarget>[];
}

interface SavedSlot<Saved> extends Record<Target, Saved> {
  readonly podType: string;
}

interface SavedRow extends Omit<RecentRow, 'place'> {
  readonly address: string;
}

/** Where it is while the model lives. Slots are found by the keys under which they were saved. */
export interface LiveParts {
  readonly podTypes: readonly string[];
  readonly state: ServerState;
  readonly recent: RecentRows;
  readonly slots: ReadonlyMap<string, Readonly<Record<Target, LiveTarget>>>;
}

export function saveLiveModel(parts: LiveParts): SavedLiveModel {
  const { podTypes, state, recent } = parts;
  return {
    podTypes: [...podTypes],
    state: state.save(),
    recent: recent.list().map((row) => saveRow(row, state)),
    slots: saveSlots(parts, (target) => target.save()),
    servers: saveServers(parts),
  };
}

function saveRow({ place, metrics, podType, target, observedMs }: RecentRow, state: ServerState): SavedRow {
  return { address: nameOf(place.server, state) ?? '', metrics, podType, target, observedMs };
}

function nameOf(server: number, { servers }: ServerState): string | undefined {
  const address = servers.addressOf(server);
  return address && Buffer.from(address).toString();
}

function saveSlots<Saved>({ slots }: LiveParts, save: (target: LiveTarget) => Saved): SavedSlot<Saved>[] {
  return [...slots].map(([podType, { ttft, tpot }]) => ({ podType, ttft: save(ttft), tpot: save(tpot) }));
}

function* saveServers(parts: LiveParts): Generator<SavedServer> {
  const { state } = parts;
  for (let server = 0; server < state.servers.capacity; server++) {
    const address = nameOf(server, state);
    if (address === undefined) continue;
    const means = state.saveServer(server);
    yield { address, means, slots: saveSlots(parts, (target) => target.saveServer(server)) };
  }
}

/** Every slot and pod type that was saved must be there by now. */
export function restoreLiveModel(saved: SavedLiveModel, { podTypes, state, recent, slots }: LiveParts): void {
  state.restore(saved.state);
  for (const { podType, ttft, tpot } of saved.slots) {
    slots.get(podType)?.ttft.restore(ttft);
    slots.get(podType)?.tpot.restore(tpot);
  }
  for (const { address, means, slots: ofServer } of saved.servers) {
    const server = state.servers.ensure(Buffer.from(address));
    state.restoreServer(server, means);
    for (const { podType, ttft, tpot } of ofServer) {
      slots.get(podType)?.ttft.restoreServer(server, ttft);
      slots.get(podType)?.tpot.restoreServer(server, tpot);
    }
  }
  for (const { address, ...row } of saved.recent) {
    const place = {
      server: state.servers.ensure(Buffer.from(address)),
      podType: numberOfPodType(podTypes, row.podType),
    };
    recent.add({ ...row, place });
  }
}
