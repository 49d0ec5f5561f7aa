/**
 * Tracks for each server decayed means of its residuals, log(observed / predicted). The mean of a server with few events is
 * shrunk to the mean of its pod type, and that to the mean of all pod types. One event costs a few additions.
 */

import type { PredictionTarget } from '../schema/observation-table.ts';
import { createServerIndex, type ServerIndex } from '../schema/server-index.ts';
import { EXPERT_COUNT, type Speed } from './experts.ts';
import type { Batch } from './slot-batch.ts';

/** A signal: residuals are kept apart by the target, and by the base of its prediction, physics or trees. */
const SIGNALS = ['ttft-physics', 'ttft-trees', 'tpot-physics', 'tpot-trees'] as const;
const SIGNAL_COUNT = SIGNALS.length;

/** The prediction to which an expert adds a mean of residuals. */
export type ResidualBase = 'physics' | 'trees';

/** Returns the signal of a target and a base. Positions in the arrays of means follow from it alone. */
export function signalOf(target: PredictionTarget, base: ResidualBase): number {
  return SIGNALS.indexOf(`${target}-${base}`);
}

/** The decays by `Speed`: a fast mean of about 5 events and a slow one of about 30. */
const DECAYS = [0.8, 0.97] as const;
const SPEED_COUNT = DECAYS.length;
const SLOW = 1;

/**
 * In the mean of a server, the mean of its pod type counts as this many events. In the mean of a pod type, so does that of all
 * pod types.
 */
const SHRINKAGE = 1.5;
/** In the fast mean of a server, its slow mean counts as this many events. */
const FAST_SHRINKAGE = 0.5;
/** In the mean of all pod types, the guess 0 counts as this many events. */
const MODEL_SHRINKAGE = 2.5;
/**
 * A residual is clipped (winsorized) to ±1, a time e times as long or as short as predicted, or to twice the slow mean residual of
 * its server if that is wider: a server of a kind that no training sample shows may be twenty times slower for good.
 */
const CLIP = 1;
const CLIP_RATIO = 2;
/** For clipping, the slow mean is shrunk towards 0 by this many events, so that a few stalls in a row do not widen the bounds. */
const CLIP_SHRINKAGE = 10;

const STRIDE = SIGNAL_COUNT * SPEED_COUNT;

/** Decayed sums of residuals and decayed counts of events (`weights`), for each signal and speed, one owner after the other. */
interface Means {
  readonly sums: Float64Array;
  readonly weights: Float64Array;
}

/** A server and its pod type, by their numbers. */
export interface ServerKey {
  /** -1 for an unknown server. */
  readonly server: number;
  /** The array that the index has for this server: another one once the number is given to another server. */
  readonly address?: Uint8Array | undefined;
  readonly podType: number;
}

/** One of `EXPERTS`, by its position, and the signal and speed of the mean residual that it adds. */
export interface AdjustedExpert {
  readonly position: number;
  readonly signal: number;
  readonly speed: Speed;
}

interface AllMeans {
  readonly byServer: Means;
  readonly byPodType: Means;
  readonly ofModel: Means;
}

export interface ObservedResidual {
  readonly residual: number;
  /** How much it counts, 0 to 1. */
  readonly certainty: number;
}

export interface ResidualTracker {
  readonly servers: ServerIndex;
  /** Adds the mean residual of each row's server to this expert's entries of `expertLogFactors`. */
  addExpected(batch: Batch, expert: AdjustedExpert, expertLogFactors: Float64Array): void;
  observe(key: ServerKey, signal: number, observed: ObservedResidual): void;
  /** Forgets every residual of these targets, and keeps the numbers of the servers. */
  clear(targets: readonly PredictionTarget[]): void;
  /** The means of each pod type and of all together, for a restart. */
  save(): SavedResiduals;
  saveServer(server: number): SavedMeans;
  /** `podTypes` has the number now of each pod type by its number in the saved means; undefined for one whose means are left out. */
  restore(saved: SavedResiduals, podTypes: readonly (number | undefined)[]): void;
  restoreServer(server: number, saved: SavedMeans): void;
  /** The sums and then the weights of one target (`rangeOfTarget`); each event of it decays them by `MEANS_DECAYS`. */
  readTarget(owner: MeansOwner, target: PredictionTarget): Float64Array;
  writeTarget(owner: MeansOwner, target: PredictionTarget, values: Float64Array): void;
}

/** The owner of the means: a server or a pod type, by its number, or all pod types together. */
export interface MeansOwner {
  readonly kind: 'server' | 'podType' | 'model';
  readonly number: number;
}

/** Both signals of a target at both speeds. */
const TARGET_COLUMNS = 2 * SPEED_COUNT;
const COLUMN_DECAYS = [...DECAYS, ...DECAYS];

/** Returns the range of one target among the means of an owner. */
export function rangeOfTarget(target: PredictionTarget): { readonly start: number; readonly length: number } {
  return { start: signalOf(target, 'physics') * SPEED_COUNT, length: TARGET_COLUMNS };
}

/** The decays of the numbers of `readTarget`: of the sums, and then of the weights. */
export const MEANS_DECAYS: readonly number[] = [...COLUMN_DECAYS, ...COLUMN_DECAYS];

export interface SavedMeans {
  readonly sums: readonly number[];
  readonly weights: readonly number[];
}

/** The slow mean (about 30 events) of the log residuals of the trees at one server, and how many events it counts. */
export function readSlowResidual(
  { sums, weights }: SavedMeans,
  target: PredictionTarget,
): { readonly mean: number; readonly weight: number } {
  const at = signalOf(target, 'trees') * SPEED_COUNT + SLOW;
  const weight = weights[at] ?? 0;
  return { mean: weight === 0 ? 0 : (sums[at] ?? 0) / weight, weight };
}

export interface SavedResiduals {
  readonly podTypes: SavedMeans;
  readonly model: SavedMeans;
}

export interface ResidualTrackerOptions {
  readonly maxServers: number;
  /** Pod types are numbered below this; 0 is shared by those without a number of their own. */
  readonly maxPodTypes: number;
}

export function createResidualTracker({ maxServers, maxPodTypes }: ResidualTrackerOptions): ResidualTracker {
  const byServer = createMeans(maxServers);
  const byPodType = createMeans(maxPodTypes);
  const ofModel = createMeans(1);
  const servers = createServerIndex(maxServers);
  servers.onForget((server) => clear(byServer, server));

  function findTarget({ kind, number }: MeansOwner, target: PredictionTarget) {
    const means = { server: byServer, podType: byPodType, model: ofModel }[kind];
    return { ...means, at: number * STRIDE + rangeOfTarget(target).start };
  }

  return {
    servers,
    addExpected: (batch, expert, expertLogFactors) =>
      addExpected({ byServer, byPodType, ofModel }, { batch, expert }, expertLogFactors),
    observe({ server, podType }, signal, observed) {
      const at = signal * SPEED_COUNT;
      addResidual(ofModel, at, observed);
      addResidual(byPodType, podType * STRIDE + at, observed);
      if (server !== -1) addResidual(byServer, server * STRIDE + at, observed);
    },
    clear(targets) {
      for (const means of [byServer, byPodType, ofModel]) for (const target of targets) clearTarget(means, target);
    },
    save: () => ({ podTypes: copyMeans(byPodType, 0, byPodType.sums.length), model: copyMeans(ofModel, 0, STRIDE) }),
    saveServer: (server) => copyMeans(byServer, server * STRIDE, STRIDE),
    restore(saved, podTypes) {
      fillMeans(ofModel, 0, saved.model);
      for (let podType = 0; podType < maxPodTypes; podType++) clear(byPodType, podType);
      for (const [savedAs, podType] of podTypes.entries())
        if (podType !== undefined) fillMeans(byPodType, podType, selectOwner(saved.podTypes, savedAs));
    },
    restoreServer: (server, saved) => fillMeans(byServer, server, saved),
    readTarget(owner, target) {
      const { sums, weights, at } = findTarget(owner, target);
      const values = new Float64Array(2 * TARGET_COLUMNS);
      values.set(sums.subarray(at, at + TARGET_COLUMNS));
      values.set(weights.subarray(at, at + TARGET_COLUMNS), TARGET_COLUMNS);
      return values;
    },
    writeTarget(owner, target, values) {
      const { sums, weights, at } = findTarget(owner, target);
      sums.set(values.subarray(0, TARGET_COLUMNS), at);
      weights.set(values.subarray(TARGET_COLUMNS), at);
    },
  };
}

function createMeans(groups: number): Means {
  return { sums: new Float64Array(groups * STRIDE), weights: new Float64Array(groups * STRIDE) };
}

function clear({ sums, weights }: Means, group: number): void {
  sums.fill(0, group * STRIDE, (group + 1) * STRIDE);
  weights.fill(0, group * STRIDE, (group + 1) * STRIDE);
}

function clearTarget({ sums, weights }: Means, target: PredictionTarget): void {
  const { start, length } = rangeOfTarget(target);
  for (let at = start; at < sums.length; at += STRIDE) {
    sums.fill(0, at, at + length);
    weights.fill(0, at, at + length);
  }
}

function addExpected(
  { byServer, byPodType, ofModel }: AllMeans,
  { batch, expert }: { readonly batch: Batch; readonly expert: AdjustedExpert },
  expertLogFactors: Float64Array,
): void {
  const { position, signal, speed } = expert;
  const { count, servers } = batch;
  const at = signal * SPEED_COUNT + SLOW;
  const podAt = batch.podType * STRIDE + at;
  const model = ofModel.sums[at]! / (ofModel.weights[at]! + MODEL_SHRINKAGE);
  const pod = readMean(byPodType, podAt, SLOW, model);
  const unknown = readMean(byPodType, podAt, speed, model);
  for (let n = 0; n < count; n++) {
    const server = servers[n]!;
    const residual = server === -1 ? unknown : readMean(byServer, server * STRIDE + at, speed, pod);
    expertLogFactors[n * EXPERT_COUNT + position]! += residual;
  }
}

/** The slow mean of a group is at `at`, and the fast one right before it. */
function readMean(means: Means, at: number, speed: Speed, parent: number): number {
  const slow = shrink(means, at, parent, SHRINKAGE);
  // A fast mean covers few events: it is shrunk to the slow mean of the same server, not to other servers.
  return speed === SLOW ? slow : shrink(means, at - SLOW + speed, slow, FAST_SHRINKAGE);
}

function shrink({ sums, weights }: Means, at: number, parent: number, strength: number): number {
  return (sums[at]! + strength * parent) / (weights[at]! + strength);
}

function addResidual({ sums, weights }: Means, at: number, { residual, certainty }: ObservedResidual): void {
  const slowMean = shrink({ sums, weights }, at + SLOW, 0, CLIP_SHRINKAGE);
  const least = Math.min(-CLIP, CLIP_RATIO * slowMean);
  const value = Math.max(least, Math.min(Math.max(CLIP, CLIP_RATIO * slowMean), residual));
  for (let speed = 0; speed < SPEED_COUNT; speed++) {
    const decay = certainty === 1 ? DECAYS[speed]! : DECAYS[speed]! ** certainty;
    sums[at + speed] = sums[at + speed]! * decay + certainty * value;
    weights[at + speed] = weights[at + speed]! * decay + certainty;
  }
}

function copyMeans({ sums, weights }: Means, from: number, length: number): SavedMeans {
  return { sums: [...sums.subarray(from, from + length)], weights: [...weights.subarray(from, from + length)] };
}

function selectOwner({ sums, weights }: SavedMeans, owner: number): SavedMeans {
  const [from, to] = [owner * STRIDE, (owner + 1) * STRIDE];
  return { sums: sums.slice(from, to), weights: weights.slice(from, to) };
}

function fillMeans(means: Means, owner: number, saved: SavedMeans): void {
  means.sums.set(saved.sums, owner * STRIDE);
  means.weights.set(saved.weights, owner * STRIDE);
}
