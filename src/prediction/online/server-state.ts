/**
 * Layer 3: how far off the model has been lately, at each server. Decayed means of log(observed / predicted), pulled
 * towards those of the pod type, and these towards those of the whole model, until a server has spoken often enough
 * for itself. One event costs a few additions.
 */

import { createServerIndex, type ServerIndex } from '../schema/server-index.ts';
import type { AskedRows } from './asked-rows.ts';
import { EXPERT_COUNT } from './experts.ts';

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
/**
 * One wild request says as much as one that took e times as long as expected, not more; or as one twice as far off, as a
 * logarithm, as its server usually is: one of another kind than all that were learned may be twenty times slower for good.
 */
const MAX_SURPRISE = 1;
const MAX_RATIO = 2;
/** So many events until half of what a holder keeps showing is no surprise any more: a few stalls in a row still are. */
const USUAL_EVENTS = 10;

const STRIDE = SIGNAL_COUNT * SPEED_COUNT;

/** Decayed sums and weights of each signal at each speed, for some number of holders. */
interface Means {
  readonly sums: Float64Array;
  readonly weights: Float64Array;
}

/** Which server of which pod type, by their numbers. */
export interface Place {
  /** -1 when nothing is known of it. */
  readonly server: number;
  readonly podType: number;
}

/** One of `EXPERTS`, by its position, and the signal and speed of the residuals that correct it. */
export interface CorrectedExpert {
  readonly position: number;
  readonly signal: number;
  readonly speed: Speed;
}

interface AllMeans {
  readonly byServer: Means;
  readonly byPodType: Means;
  readonly ofModel: Means;
}

export interface ServerState {
  readonly servers: ServerIndex;
  /** Adds to what this expert says of each row the log residual to expect there. */
  addOffsets(asked: AskedRows, expert: CorrectedExpert): void;
  observe(place: Place, signal: number, residual: number): void;
  /** Forgets every residual, and keeps the numbers of the servers. */
  clear(): void;
  /** What it knows but of servers, for a restart. */
  save(): SavedServerState;
  saveServer(server: number): SavedMeans;
  restore(saved: SavedServerState): void;
  restoreServer(server: number, saved: SavedMeans): void;
}

export interface SavedMeans {
  readonly sums: readonly number[];
  readonly weights: readonly number[];
}

export interface SavedServerState {
  readonly podTypes: SavedMeans;
  readonly model: SavedMeans;
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

  return {
    servers,
    addOffsets: (asked, expert) => addOffsets({ byServer, byPodType, ofModel }, asked, expert),
    observe({ server, podType }, signal, residual) {
      const at = signal * SPEED_COUNT;
      addResidual(ofModel, at, residual);
      addResidual(byPodType, podType * STRIDE + at, residual);
      if (server !== -1) addResidual(byServer, server * STRIDE + at, residual);
    },
    clear() {
      for (const { sums, weights } of [byServer, byPodType, ofModel]) {
        sums.fill(0);
        weights.fill(0);
      }
    },
    save: () => ({ podTypes: copyMeans(byPodType, 0, byPodType.sums.length), model: copyMeans(ofModel, 0, STRIDE) }),
    saveServer: (server) => copyMeans(byServer, server * STRIDE, STRIDE),
    restore(saved) {
      fillMeans(ofModel, 0, saved.model);
      fillMeans(byPodType, 0, saved.podTypes);
    },
    restoreServer: (server, saved) => fillMeans(byServer, server * STRIDE, saved),
  };
}

function createMeans(holders: number): Means {
  return { sums: new Float64Array(holders * STRIDE), weights: new Float64Array(holders * STRIDE) };
}

function clear({ sums, weights }: Means, holder: number): void {
  sums.fill(0, holder * STRIDE, (holder + 1) * STRIDE);
  weights.fill(0, holder * STRIDE, (holder + 1) * STRIDE);
}

function addOffsets({ byServer, byPodType, ofModel }: AllMeans, asked: AskedRows, expert: CorrectedExpert): void {
  const { signal, speed } = expert;
  const { count, servers, expertLogs } = asked;
  const at = signal * SPEED_COUNT + SLOW;
  const podAt = asked.podType * STRIDE + at;
  const model = ofModel.sums[at]! / (ofModel.weights[at]! + MODEL_SHRINKAGE);
  const pod = readOffset(byPodType, podAt, SLOW, model);
  const unknown = readOffset(byPodType, podAt, speed, model);
  for (let n = 0; n < count; n++) {
    const server = servers[n]!;
    const offset = server === -1 ? unknown : readOffset(byServer, server * STRIDE + at, speed, pod);
    expertLogs[n * EXPERT_COUNT + expert.position]! += offset;
  }
}

/** The slow mean of a holder stands at `at`, and the fast one before it. */
function readOffset(means: Means, at: number, speed: Speed, parent: number): number {
  const slow = shrink(means, at, parent, SHRINKAGE);
  // A fast mean is of few events: it is pulled to the slow one of the same server, not to what others show.
  return speed === SLOW ? slow : shrink(means, at - SLOW + speed, slow, FAST_SHRINKAGE);
}

function shrink({ sums, weights }: Means, at: number, parent: number, strength: number): number {
  return (sums[at]! + strength * parent) / (weights[at]! + strength);
}

function addResidual({ sums, weights }: Means, at: number, residual: number): void {
  const usual = shrink({ sums, weights }, at + SLOW, 0, USUAL_EVENTS);
  const least = Math.min(-MAX_SURPRISE, MAX_RATIO * usual);
  const value = Math.max(least, Math.min(Math.max(MAX_SURPRISE, MAX_RATIO * usual), residual));
  for (let speed = 0; speed < SPEED_COUNT; speed++) {
    sums[at + speed] = sums[at + speed]! * DECAYS[speed]! + value;
    weights[at + speed] = weights[at + speed]! * DECAYS[speed]! + 1;
  }
}

function copyMeans({ sums, weights }: Means, from: number, length: number): SavedMeans {
  return { sums: [...sums.subarray(from, from + length)], weights: [...weights.subarray(from, from + length)] };
}

function fillMeans(means: Means, at: number, saved: SavedMeans): void {
  const length = Math.min(saved.sums.length, means.sums.length - at);
  means.sums.set(saved.sums.slice(0, length), at);
  means.weights.set(saved.weights.slice(0, length), at);
}
