/**
 * Layer 4: whom to believe. Several experts predict the logarithm of a time; each is weighed by how well it has done
 * lately, so that the mixture is never much worse than the best of them, and a bad one costs nothing for long. Each
 * server has its own weights, pulled to those of the slot while it has said little: where one has become slower, what
 * it showed since is right, however right the model still is elsewhere.
 */
import type { AskedRows } from './asked-rows.ts';
import { EXPERT_COUNT } from './experts.ts';

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
  /** What the experts say of each row, weighed. */
  mix(asked: AskedRows): void;
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
    weightsOf: (server) => trustIn(server, servers, slot).weights,
    mix: (asked) => mixRows(asked, servers, slot),
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

// Not by `servers[server]` alone: to look for -1, or beyond the end, costs ten times what a look inside does.
function trustIn(server: number, servers: readonly (Trust | undefined)[], slot: Trust): Trust {
  return server >= 0 && server < servers.length ? (servers[server] ?? slot) : slot;
}

function mixRows({ count, servers, expertLogs, logs }: AskedRows, trusts: readonly (Trust | undefined)[], slot: Trust) {
  for (let n = 0; n < count; n++) {
    const { weights } = trustIn(servers[n]!, trusts, slot);
    let sum = 0;
    for (let e = 0; e < EXPERT_COUNT; e++) sum += weights[e]! * expertLogs[n * EXPERT_COUNT + e]!;
    logs[n] = sum;
  }
}

function createTrust(): Trust {
  return { losses: new Float64Array(EXPERT_COUNT), weights: Float64Array.from(INITIAL_TRUST), count: 0 };
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
  for (let e = 0; e < EXPERT_COUNT; e++) least = Math.min(least, means[e]!);
  const sharpness = (SHARPNESS * count) / (count + 10) / Math.max(least, 1e-3);
  let total = 0;
  for (let e = 0; e < EXPERT_COUNT; e++) {
    weights[e] = INITIAL_TRUST[e]! * Math.exp(-sharpness * (means[e]! - least));
    total += weights[e]!;
  }
  for (let e = 0; e < EXPERT_COUNT; e++) weights[e]! /= total;
}

function saveTrust({ losses, count }: Trust): SavedTrust {
  return { losses: [...losses], count };
}

/** False when it is of other experts than these, or of nothing. */
function fill(trust: Trust, saved: SavedTrust): boolean {
  if (saved.losses.length !== EXPERT_COUNT || !(saved.count > 0)) return false;
  trust.losses.set(saved.losses);
  trust.count = saved.count;
  return true;
}
