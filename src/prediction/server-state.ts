/**
 * Layer 3: how far off the model has been lately, at each server. Decayed means of log(observed / predicted), pulled
 * towards those of the pod type, and these towards those of the whole model, until a server has spoken often enough
 * for itself. One event costs a few additions.
 */
import { createServerIndex, type ServerIndex } from './server-index.ts';

/** Residuals are kept apart by what was predicted: both targets, by physics and by trees. */
export const SIGNALS = ['ttft-physics', 'ttft-trees', 'tpot-physics', 'tpot-trees'] as const;
const SIGNAL_COUNT = SIGNALS.length;

/** A fast mean of about 5 events and a slow one of about 30. */
const DECAYS = [0.8, 0.97] as const;
const SPEED_COUNT = DECAYS.length;
/** Position in `DECAYS`. */
export type Speed = 0 | 1;
const SLOW = 1;

/** How many events the word of the pod type about a server, and of the model about a pod type, is worth. */
const SHRINKAGE = 1.5;
/** How many events the slow mean's word is worth to the fast one. */
const FAST_SHRINKAGE = 0.5;
/** The whole model starts from nothing but a guess, which one event may well overrule. */
const MODEL_SHRINKAGE = 2.5;
/** One wild request says as much as one that took e times as long as expected, not more. */
const MAX_RESIDUAL = 1;

const STRIDE = SIGNAL_COUNT * SPEED_COUNT;

/** Decayed sums and weights of each signal at each speed, for some number of holders. */
interface Means {
  readonly sums: Float64Array;
  readonly weights: Float64Array;
}

export interface ServerState {
  readonly servers: ServerIndex;
  /** The expected log residual at a server (-1: unknown) of a pod type. */
  offset(server: number, podType: number, signal: number, speed: Speed): number;
  observe(server: number, podType: number, signal: number, residual: number): void;
  /** Forgets every residual, and keeps the numbers of the servers. */
  clear(): void;
  /** Everything it knows, for a restart. */
  save(): SavedServerState;
  restore(saved: SavedServerState): void;
}

export interface SavedServerState {
  readonly servers: readonly { readonly address: string; readonly sums: number[]; readonly weights: number[] }[];
  readonly podTypes: { readonly sums: number[]; readonly weights: number[] };
  readonly model: { readonly sums: number[]; readonly weights: number[] };
}

export interface ServerStateOptions {
  readonly maxServers: number;
  /** Pod types are numbered below this; 0 stands for those without a number of their own. */
  readonly maxPodTypes: number;
  /** Hears of every server's number that is about to mean another server. */
  readonly onForget?: (server: number) => void;
}

export function createServerState({ maxServers, maxPodTypes, onForget }: ServerStateOptions): ServerState {
  const byServer = createMeans(maxServers);
  const byPodType = createMeans(maxPodTypes);
  const ofModel = createMeans(1);
  const servers = createServerIndex(maxServers, (server) => {
    clear(byServer, server);
    onForget?.(server);
  });

  function offset(server: number, podType: number, signal: number, speed: Speed): number {
    const at = signal * SPEED_COUNT + SLOW;
    const model = ofModel.sums[at]! / (ofModel.weights[at]! + MODEL_SHRINKAGE);
    const pod = shrink(byPodType, podType * STRIDE + at, model);
    const slow = server === -1 ? pod : shrink(byServer, server * STRIDE + at, pod);
    if (speed === SLOW) return slow;
    // A fast mean is of few events: it is pulled to the slow one of the same server, not to what others show.
    if (server === -1) return shrink(byPodType, podType * STRIDE + at - SLOW, slow, FAST_SHRINKAGE);
    return shrink(byServer, server * STRIDE + at - SLOW, slow, FAST_SHRINKAGE);
  }

  return {
    servers,
    offset,
    observe(server, podType, signal, residual) {
      const value = Math.max(-MAX_RESIDUAL, Math.min(MAX_RESIDUAL, residual));
      const at = signal * SPEED_COUNT;
      addResidual(ofModel, at, value);
      addResidual(byPodType, podType * STRIDE + at, value);
      if (server !== -1) addResidual(byServer, server * STRIDE + at, value);
    },
    clear() {
      for (const { sums, weights } of [byServer, byPodType, ofModel]) {
        sums.fill(0);
        weights.fill(0);
      }
    },
    save() {
      const known = Array.from({ length: maxServers }, (_, server) => server).filter(
        (server) => servers.addressOf(server) !== undefined,
      );
      return {
        servers: known.map((server) => ({
          address: Buffer.from(servers.addressOf(server)!).toString('utf8'),
          ...copyMeans(byServer, server * STRIDE, STRIDE),
        })),
        podTypes: copyMeans(byPodType, 0, byPodType.sums.length),
        model: copyMeans(ofModel, 0, STRIDE),
      };
    },
    restore(saved) {
      fillMeans(ofModel, 0, saved.model);
      fillMeans(byPodType, 0, saved.podTypes);
      for (const { address, ...means } of saved.servers)
        fillMeans(byServer, servers.ensure(Buffer.from(address)) * STRIDE, means);
    },
  };
}

function createMeans(holders: number): Means {
  return { sums: new Float64Array(holders * STRIDE), weights: new Float64Array(holders * STRIDE) };
}

function clear({ sums, weights }: Means, holder: number): void {
  sums.fill(0, holder * STRIDE, (holder + 1) * STRIDE);
  weights.fill(0, holder * STRIDE, (holder + 1) * STRIDE);
}

function shrink({ sums, weights }: Means, at: number, parent: number, strength = SHRINKAGE): number {
  return (sums[at]! + strength * parent) / (weights[at]! + strength);
}

function addResidual({ sums, weights }: Means, at: number, value: number): void {
  for (let speed = 0; speed < SPEED_COUNT; speed++) {
    sums[at + speed] = sums[at + speed]! * DECAYS[speed]! + value;
    weights[at + speed] = weights[at + speed]! * DECAYS[speed]! + 1;
  }
}

function copyMeans({ sums, weights }: Means, from: number, length: number) {
  return { sums: [...sums.subarray(from, from + length)], weights: [...weights.subarray(from, from + length)] };
}

function fillMeans(means: Means, at: number, saved: { readonly sums: number[]; readonly weights: number[] }): void {
  const length = Math.min(saved.sums.length, means.sums.length - at);
  means.sums.set(saved.sums.slice(0, length), at);
  means.weights.set(saved.weights.slice(0, length), at);
}
