/**
 * Layer 4: whom to believe. Several experts predict the logarithm of a time; each is weighed by how well it has done
 * lately, so that the mixture is never much worse than the best of them, and a bad one costs nothing for long. Each
 * server has its own weights, pulled to those of the slot while it has said little: where one has become slower, what
 * it showed since is right, however right the model still is elsewhere.
 */
import type { Speed } from './server-state.ts';

/** What an expert says: physics or trees, corrected by a recent offset or not. */
export interface Expert {
  readonly name: string;
  readonly base: 'physics' | 'trees';
  readonly speed: Speed | undefined;
}

export const EXPERTS: readonly Expert[] = [
  { name: 'physics', base: 'physics', speed: undefined },
  { name: 'physics + slow offset', base: 'physics', speed: 1 },
  { name: 'physics + fast offset', base: 'physics', speed: 0 },
  { name: 'trees', base: 'trees', speed: undefined },
  { name: 'trees + slow offset', base: 'trees', speed: 1 },
  { name: 'trees + fast offset', base: 'trees', speed: 0 },
];

/** Losses of about the last 60 events count. */
const DECAY = 0.985;
/** How sharply a lower loss is preferred, in units of the best expert's own mean loss. */
const SHARPNESS = 12;
/** One wild request must not dethrone an expert. */
const MAX_LOSS = 1;
/** Before anything is known, an expert that learned from rows is believed, without offsets. */
const INITIAL_TRUST = [0.05, 0.1, 0.1, 0.35, 0.3, 0.1] as const;
/** How many events the slot's word about a server is worth. */
const SHRINKAGE = 10;

/** Decayed sums of losses, how many events they are of, and the weights that follow. */
interface Trust {
  readonly losses: Float64Array;
  readonly weights: Float64Array;
  count: number;
}

export interface SavedTrust {
  readonly losses: readonly number[];
  readonly count: number;
}

export interface Selector {
  /** One weight an expert for this server (-1: unknown); they sum to 1. */
  weightsOf(server: number): Float64Array;
  /** `predictions` are the logarithms that the experts said. */
  observe(server: number, predictions: ArrayLike<number>, observedLog: number): void;
  /** Mean absolute log error of each expert lately. */
  losses(): number[];
  /** This number means another server from now on. */
  forget(server: number): void;
  save(): SavedTrust;
  saveServer(server: number): SavedTrust | undefined;
  restore(saved: SavedTrust): void;
  restoreServer(server: number, saved: SavedTrust): void;
}

export function createSelector(): Selector {
  const slot = createTrust();
  const servers: (Trust | undefined)[] = [];

  function reweighServer(server: Trust): void {
    const prior = slot.losses.map((sum) => (SHRINKAGE * sum) / Math.max(1, slot.count));
    reweigh(
      server,
      server.losses.map((sum, e) => (sum + prior[e]!) / (server.count + SHRINKAGE)),
      Math.max(slot.count, server.count),
    );
  }

  return {
    weightsOf: (server) => (server === -1 ? slot : (servers[server] ?? slot)).weights,
    observe(server, predictions, observedLog) {
      addLosses(slot, predictions, observedLog);
      reweigh(
        slot,
        slot.losses.map((sum) => sum / slot.count),
        slot.count,
      );
      if (server === -1) return;
      const own = servers[server] ?? createTrust();
      servers[server] = own;
      addLosses(own, predictions, observedLog);
      reweighServer(own);
    },
    losses: () => Array.from(slot.losses, (sum) => (slot.count > 0 ? sum / slot.count : 0)),
    forget(server) {
      servers[server] = undefined;
    },
    save: () => saveTrust(slot),
    saveServer: (server) => servers[server] && saveTrust(servers[server]),
    restore(saved) {
      if (!fill(slot, saved)) return;
      reweigh(
        slot,
        slot.losses.map((sum) => sum / slot.count),
        slot.count,
      );
    },
    restoreServer(server, saved) {
      const own = createTrust();
      if (!fill(own, saved)) return;
      servers[server] = own;
      reweighServer(own);
    },
  };
}

function createTrust(): Trust {
  return { losses: new Float64Array(EXPERTS.length), weights: Float64Array.from(INITIAL_TRUST), count: 0 };
}

function addLosses(trust: Trust, predictions: ArrayLike<number>, observedLog: number): void {
  const { losses } = trust;
  for (let e = 0; e < losses.length; e++)
    losses[e] = losses[e]! * DECAY + Math.min(MAX_LOSS, Math.abs(observedLog - predictions[e]!));
  trust.count = trust.count * DECAY + 1;
}

/** The confidence grows with what was seen: after few events the initial trust still speaks. */
function reweigh({ weights }: Trust, means: Float64Array, count: number): void {
  let least = Number.POSITIVE_INFINITY;
  for (let e = 0; e < EXPERTS.length; e++) least = Math.min(least, means[e]!);
  const sharpness = (SHARPNESS * count) / (count + 10) / Math.max(least, 1e-3);
  let total = 0;
  for (let e = 0; e < EXPERTS.length; e++) {
    weights[e] = INITIAL_TRUST[e]! * Math.exp(-sharpness * (means[e]! - least));
    total += weights[e]!;
  }
  for (let e = 0; e < EXPERTS.length; e++) weights[e]! /= total;
}

function saveTrust({ losses, count }: Trust): SavedTrust {
  return { losses: [...losses], count };
}

/** False when it is of other experts than these, or of nothing. */
function fill(trust: Trust, saved: SavedTrust): boolean {
  if (saved.losses.length !== EXPERTS.length || !(saved.count > 0)) return false;
  trust.losses.set(saved.losses);
  trust.count = saved.count;
  return true;
}
