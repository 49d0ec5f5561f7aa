/**
 * Weighs the experts by their recent losses (prediction with expert advice). Each predicts the logarithm of a time, and a lower
 * recent loss gives a higher weight, so the mixture is never much worse than the best expert. Each server has its own weights,
 * shrunk to those of the slot while it has few events: a server that has become slower is predicted best by its recent residuals,
 * even if the model is still right for the others.
 */

import { EXPERT_COUNT } from './experts.ts';
import type { Batch, Mixture } from './slot-batch.ts';

/** Losses of about the last 60 events count. */
export const LOSS_DECAY = 0.985;
/** How steeply a weight falls: its exponent for each unit of loss. The unit is the mean loss of the best expert. */
const SHARPNESS = 20;
/** Requests that run together have similar errors, so with this feedback delay each loss counts half. */
const HALF_FEEDBACK_DELAY = 5;
/** Losses are clipped at this: one outlier must not make the best expert look worse than the others. */
const MAX_LOSS = 3;
/** Before the first event and while there are few, experts with a trained model (trees) weigh most. */
const INITIAL_WEIGHTS = [0.04, 0.08, 0.08, 0.5, 0.2, 0.1] as const;
/** The losses of the slot count as this many events of a server. */
const SHRINKAGE = 10;

const SERVERS_AT_ONCE = 512;

/** Decayed sums of losses, the decayed number of their events, and the weights computed from them. */
interface ExpertRecord {
  readonly losses: Float64Array;
  readonly weights: Float64Array;
  count: number;
}

export interface SavedExperts {
  readonly losses: readonly number[];
  readonly count: number;
}

/** The predictions for a request, and its observed time. */
export interface ObservedForecast {
  /** The logarithm of the milliseconds that each expert predicted. */
  readonly predictions: ArrayLike<number>;
  readonly observedLog: number;
  /** How much it counts, 0 to 1. */
  readonly certainty: number;
}

export interface ExpertWeights {
  /** One weight for each expert at this server (-1: unknown); they sum to 1. */
  weightsOf(server: number): Float64Array;
  /** Fills `mixture.logFactors` with the means of `mixture.expertLogFactors`, weighted for the server of each row, or by `given`. */
  mix(batch: Batch, mixture: Mixture, given?: readonly number[]): void;
  observe(server: number, observed: ObservedForecast): void;
  /** Must be called before this number is given to another server. */
  forget(server: number): void;
  save(): SavedExperts;
  saveServer(server: number): SavedExperts | undefined;
  restore(saved: SavedExperts): void;
  restoreServer(server: number, saved: SavedExperts): void;
  /** Computes the weights of every server again, from its losses and those of the slot. Runs in steps. */
  reweighServers(): Iterable<void>;
}

/** `readFeedbackDelay`: how many times of other requests are observed between a prediction and its own time, on recent average. */
export function createExpertWeights(readFeedbackDelay: () => number = () => 0): ExpertWeights {
  const slot = createRecord();
  const servers: (ExpertRecord | undefined)[] = [];
  return {
    weightsOf: (server) => findRecord(server, { servers, slot }).weights,
    mix(batch, mixture, given) {
      const records = given && { servers: [], slot: { weights: Float64Array.from(given) } };
      mixRows(batch, mixture, records ?? { servers, slot });
    },
    observe(server, observed) {
      addLosses(slot, observed);
      reweighSlot(slot, readFeedbackDelay());
      if (server === -1) return;
      const own = servers[server] ?? createRecord();
      servers[server] = own;
      addLosses(own, observed);
      reweighServer(own, slot, readFeedbackDelay());
    },
    forget(server) {
      servers[server] = undefined;
    },
    save: () => saveRecord(slot),
    saveServer: (server) => servers[server] && saveRecord(servers[server]),
    restore(saved) {
      if (fill(slot, saved)) reweighSlot(slot, readFeedbackDelay());
    },
    restoreServer(server, saved) {
      const own = createRecord();
      if (!fill(own, saved)) return;
      servers[server] = own;
      reweighServer(own, slot, readFeedbackDelay());
    },
    *reweighServers() {
      for (const [server, own] of servers.entries()) {
        if (own !== undefined) reweighServer(own, slot, readFeedbackDelay());
        if (server % SERVERS_AT_ONCE === SERVERS_AT_ONCE - 1) yield;
      }
    },
  };
}

// An array look-up at -1 or beyond the end costs ten times as much as one inside, so the bounds are checked first.
function findRecord(server: number, { servers, slot }: AllWeights): Weights {
  return server >= 0 && server < servers.length ? (servers[server] ?? slot) : slot;
}

type Weights = Pick<ExpertRecord, 'weights'>;

interface AllWeights {
  readonly servers: readonly (Weights | undefined)[];
  readonly slot: Weights;
}

function mixRows({ count, servers }: Batch, { expertLogFactors, logFactors }: Mixture, records: AllWeights): void {
  for (let n = 0; n < count; n++) {
    const { weights } = findRecord(servers[n]!, records);
    let sum = 0;
    for (let e = 0; e < EXPERT_COUNT; e++) sum += weights[e]! * expertLogFactors[n * EXPERT_COUNT + e]!;
    logFactors[n] = sum;
  }
}

function createRecord(): ExpertRecord {
  return { losses: new Float64Array(EXPERT_COUNT), weights: Float64Array.from(INITIAL_WEIGHTS), count: 0 };
}

function addLosses(record: ExpertRecord, { predictions, observedLog, certainty }: ObservedForecast): void {
  const { losses } = record;
  const decay = certainty === 1 ? LOSS_DECAY : LOSS_DECAY ** certainty;
  for (let e = 0; e < losses.length; e++)
    losses[e] = losses[e]! * decay + certainty * Math.min(MAX_LOSS, Math.abs(observedLog - predictions[e]!));
  record.count = record.count * decay + certainty;
}

function reweighSlot(slot: ExpertRecord, feedbackDelay: number): void {
  reweigh(
    slot,
    slot.losses.map((sum) => sum / slot.count),
    countEvidence(slot.count, feedbackDelay),
  );
}

function reweighServer(server: ExpertRecord, slot: ExpertRecord, feedbackDelay: number): void {
  const prior = slot.losses.map((sum) => (SHRINKAGE * sum) / Math.max(1, slot.count));
  reweigh(
    server,
    server.losses.map((sum, e) => (sum + prior[e]!) / (server.count + SHRINKAGE)),
    countEvidence(Math.max(slot.count, server.count), feedbackDelay),
  );
}

/** The effective number of independent events. */
function countEvidence(count: number, feedbackDelay: number): number {
  return count / (1 + feedbackDelay / HALF_FEEDBACK_DELAY);
}

/** The sharpness grows with the number of events, so after few of them the initial weights still count. */
function reweigh({ weights }: ExpertRecord, means: Float64Array, count: number): void {
  let least = Number.POSITIVE_INFINITY;
  for (let e = 0; e < EXPERT_COUNT; e++) least = Math.min(least, means[e]!);
  const sharpness = (SHARPNESS * count) / (count + 10) / Math.max(least, 1e-3);
  let total = 0;
  for (let e = 0; e < EXPERT_COUNT; e++) {
    weights[e] = INITIAL_WEIGHTS[e]! * Math.exp(-sharpness * (means[e]! - least));
    total += weights[e]!;
  }
  for (let e = 0; e < EXPERT_COUNT; e++) weights[e]! /= total;
}

function saveRecord({ losses, count }: ExpertRecord): SavedExperts {
  return { losses: [...losses], count };
}

/** Returns false for a record of a different number of experts, or without events. */
function fill(record: ExpertRecord, saved: SavedExperts): boolean {
  if (saved.losses.length !== EXPERT_COUNT || !(saved.count > 0)) return false;
  record.losses.set(saved.losses);
  record.count = saved.count;
  return true;
}
