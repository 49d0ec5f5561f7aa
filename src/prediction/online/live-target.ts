/**
 * Layers 3 and 4 of docs/how-it-works/prediction.md for one target of one slot: mixes the predictions of the experts, and predicts how far off the mixture
 * may be. Each step is a loop over all rows of a batch: row by row, the calls around the arithmetic would cost several
 * times as much.
 */

import type { TargetModel } from '../model/model.ts';
import { type Estimate, readEstimate, type TargetEstimates } from '../model/slot-evaluator.ts';
import { clampMs } from '../schema/milliseconds.ts';
import type { Target } from '../schema/observation-table.ts';
import { createExpertWeights, type ExpertWeights } from './expert-weights.ts';
import { EXPERT_COUNT, EXPERTS } from './experts.ts';
import { type PredictedInterval, quantileMs, type StatisticColumn } from './intervals/interval-statistics.ts';
import { createPredictionIntervals, type PredictionIntervals } from './intervals/prediction-intervals.ts';
import { createLiveOffsets, type LiveOffsets } from './live-offsets.ts';
import { createQueueTrust, type QueueClaim } from './queue-trust.ts';
import {
  type CorrectedExpert,
  type ResidualBase,
  type ResidualTracker,
  type ServerKey,
  signalOf,
} from './residual-tracker.ts';
import type { Batch, Mixture } from './slot-batch.ts';

/** The prediction for one request, kept until its time is known. */
export interface TargetForecast {
  readonly logPhysics: number;
  readonly logTrees: number;
  readonly expertLogs: readonly number[];
  /** The mixture of the experts; residuals are relative to it. */
  readonly mixtureMs: number;
  readonly medianMs: number;
  readonly interval: PredictedInterval;
  readonly queueClaim: QueueClaim;
}

export interface CertainTime {
  readonly observedMs: number;
  /** How much it counts, 0 to 1. */
  readonly certainty: number;
}

export interface LiveTarget {
  readonly weights: ExpertWeights;
  readonly intervals: PredictionIntervals;
  /** Fills the mixture of the experts for these rows. */
  mix(estimates: TargetEstimates, batch: Batch, mixture: Mixture): void;
  /** Fills the mixture with the model's own predictions, for servers without any report. */
  trustModel(estimates: TargetEstimates, batch: Batch, mixture: Mixture): void;
  /** Writes one statistic of each row of a mixture. */
  fillStatistic(batch: Batch, mixture: Mixture, column: StatisticColumn): void;
  /** Forecasts row 0 of a call, the only row of the batch; `mixture` is filled on the way. */
  forecast(estimates: TargetEstimates, batch: Batch, mixture: Mixture): TargetForecast;
  observe(forecast: TargetForecast, key: ServerKey, observed: CertainTime): void;
  /** Moves only the residuals of servers, by what this model would have predicted. */
  replay(estimate: Estimate, key: ServerKey, observedMs: number): void;
  /** Another model predicts from now on; what was learned about servers stays. */
  replaceModel(model: TargetModel): void;
  /** Call when this number is about to mean another server. */
  forgetServer(server: number): void;
}

export interface LiveTargetOptions {
  readonly tracker: ResidualTracker;
  /** As `normalizePodType` writes it. */
  readonly podType: string;
  readonly initial: TargetModel;
}

export function createLiveTarget(target: Target, { tracker, podType, initial }: LiveTargetOptions): LiveTarget {
  const intervals = createPredictionIntervals(target, initial.calibration);
  const weights = createExpertWeights(() => intervals.feedbackDelay);
  const signals: BaseSignals = { physics: signalOf(target, 'physics'), trees: signalOf(target, 'trees') };
  const corrected = listCorrected(signals);
  const queueTrust = createQueueTrust(target);
  let offsets = createLiveOffsets(initial.offsets, podType, tracker.servers);

  function mix(estimates: TargetEstimates, batch: Batch, mixture: Mixture): void {
    startExperts(estimates, batch, mixture);
    for (const expert of corrected) tracker.addExpected(batch, expert, mixture.expertLogs);
    weights.mix(batch, mixture);
    multiplyPhysics(estimates, batch, { mixture, offsets });
  }

  return {
    weights,
    intervals,
    mix(estimates, batch, mixture) {
      mix(estimates, batch, mixture);
      queueTrust.raise(mixture.timesMs, batch);
    },
    trustModel(estimates, batch, mixture) {
      copyTreeLogs(estimates, batch, mixture);
      multiplyPhysics(estimates, batch, { mixture, offsets });
      queueTrust.raise(mixture.timesMs, batch);
    },
    fillStatistic: ({ count, rows, servers, waits }, { timesMs }, column) =>
      intervals.fill({ count, rows, servers, leastMs: queueTrust.leastQuantiles(waits), mixtureMs: timesMs }, column),
    forecast(estimates, batch, mixture) {
      mix(estimates, batch, mixture);
      const queueClaim = { leastMs: batch.waits.leastMs[0]!, predictedMs: mixture.timesMs[0]! };
      queueTrust.raise(mixture.timesMs, batch);
      const server = batch.servers[0]!;
      const leastMs = queueTrust.leastQuantiles(batch.waits)?.[0];
      const interval = intervals.predictInterval(mixture.timesMs[0]!, server, leastMs);
      const offset = offsets.read(server);
      return { ...describeForecast(readEstimate(estimates, 0), mixture, { offset, interval }), queueClaim };
    },
    observe({ logPhysics, logTrees, expertLogs, mixtureMs, interval, queueClaim }, key, { observedMs, certainty }) {
      const observedLog = Math.log(observedMs);
      queueTrust.observe(queueClaim, observedMs);
      intervals.observe(interval, key.server, observedLog - Math.log(mixtureMs));
      weights.observe(key.server, { predictions: expertLogs, observedLog, certainty });
      tracker.observe(key, signals.physics, { residual: observedLog - logPhysics, certainty });
      tracker.observe(key, signals.trees, { residual: observedLog - logTrees, certainty });
    },
    replay({ physicsMs, treeLog }, key, observedMs) {
      const residual = Math.log(observedMs) - offsets.read(key.server) - Math.log(physicsMs);
      tracker.observe(key, signals.physics, { residual, certainty: 1 });
      tracker.observe(key, signals.trees, { residual: residual - treeLog, certainty: 1 });
    },
    replaceModel(next) {
      intervals.replaceCalibration(next.calibration);
      offsets = createLiveOffsets(next.offsets, podType, tracker.servers);
    },
    forgetServer(server) {
      for (const part of [offsets, weights, intervals.ofServers]) part.forget(server);
    },
  };
}

type BaseSignals = Readonly<Record<ResidualBase, number>>;

function listCorrected(signals: BaseSignals): CorrectedExpert[] {
  return EXPERTS.flatMap(({ base, speed }, position) =>
    speed === undefined ? [] : [{ position, signal: signals[base], speed }],
  );
}

const TREE_SHARES = Float64Array.from(EXPERTS, ({ base }) => (base === 'trees' ? 1 : 0));

/** The experts without the residuals that correct them: the factor of physics is 1, the other is that of the trees. */
function startExperts({ treeLogs }: TargetEstimates, { count, rows }: Batch, { expertLogs }: Mixture): void {
  for (let n = 0; n < count; n++) {
    const treeLog = treeLogs[rows[n]!]!;
    for (let e = 0; e < EXPERT_COUNT; e++) expertLogs[n * EXPERT_COUNT + e] = TREE_SHARES[e]! * treeLog;
  }
}

function copyTreeLogs({ treeLogs }: TargetEstimates, { count, rows }: Batch, { logs }: Mixture): void {
  for (let n = 0; n < count; n++) logs[n] = treeLogs[rows[n]!]!;
}

/** Adds the server offsets to the logarithms of the mixture, and multiplies physics by the result. */
function multiplyPhysics(
  { physicsMs }: TargetEstimates,
  { count, rows, servers }: Batch,
  { mixture, offsets }: { readonly mixture: Mixture; readonly offsets: LiveOffsets },
): void {
  const { logs, timesMs } = mixture;
  offsets.addTo(logs, servers, count);
  for (let n = 0; n < count; n++) timesMs[n] = clampMs(physicsMs[rows[n]!]! * Math.exp(logs[n]!));
}

/** `mixture` is that of the one row. */
function describeForecast(
  { physicsMs, treeLog }: Estimate,
  mixture: Mixture,
  { offset, interval }: { readonly offset: number; readonly interval: PredictedInterval },
): Omit<TargetForecast, 'queueClaim'> {
  const mixtureMs = mixture.timesMs[0]!;
  const logPhysics = Math.log(physicsMs) + offset;
  const logTrees = logPhysics + treeLog;
  const expertLogs = Array.from(mixture.expertLogs.subarray(0, EXPERT_COUNT), (log) => logPhysics + log);
  return { logPhysics, logTrees, expertLogs, mixtureMs, medianMs: quantileMs('p50', mixtureMs, interval), interval };
}

/** The time that nine of ten such requests should stay below, as it was forecast. */
export function forecastP90Ms({ mixtureMs, interval }: TargetForecast): number {
  return quantileMs('p90', mixtureMs, interval);
}
