/**
 * Predicts one target (TTFT or TPOT) of one slot, and learns from each observed time. It then updates the mean residuals, the
 * weights of the experts and the intervals. A prediction starts from the model's estimates: it mixes the experts
 * (`expert-weights.ts`), adds server offsets, raises TTFT to the bound of a stalled queue, and computes the interval around it
 * (`intervals/`). Layers 3 and 4 of docs/how-it-works/prediction.md. Each step loops over all rows of a batch, since calls for
 * each row would cost several times the arithmetic.
 */

import type { TimeModel } from '../model/model.ts';
import { type Estimate, readEstimate, type TargetEstimates } from '../model/slot-evaluator.ts';
import { clampMs } from '../schema/milliseconds.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';
import { createExpertWeights, type ExpertWeights } from './expert-weights.ts';
import { EXPERT_COUNT, EXPERTS } from './experts.ts';
import type { DatedState } from './intervals/dated-state.ts';
import {
  type PredictedInterval,
  quantileMs,
  type StatisticColumn,
  translateInterval,
} from './intervals/interval-statistics.ts';
import { createPredictionIntervals, type PredictionIntervals } from './intervals/prediction-intervals.ts';
import { createLiveOffsets, type LiveOffsets } from './live-offsets.ts';
import {
  type AdjustedExpert,
  type ResidualBase,
  type ResidualTracker,
  type ServerKey,
  signalOf,
} from './residual-tracker.ts';
import type { Batch, Mixture } from './slot-batch.ts';
import { createStalledQueueCheck, type ForecastBound } from './stalled-queue/stalled-queue-check.ts';

/** The prediction for one request, kept until its time is known. */
export interface TargetForecast {
  /** Logarithms of milliseconds: by physics and the server's offset, by the trees too, and by each expert. */
  readonly logPhysics: number;
  readonly logTrees: number;
  readonly expertLogs: readonly number[];
  /** The weight of each expert in the mixture. */
  readonly weights: readonly number[];
  /** The mixture of the experts; residuals are relative to it. */
  readonly mixtureMs: number;
  readonly medianMs: number;
  readonly interval: PredictedInterval;
  readonly queueBound: ForecastBound;
}

export interface CertainTime {
  readonly observedMs: number;
  /** How much it counts, 0 to 1. */
  readonly certainty: number;
}

export interface TargetPredictor {
  readonly weights: ExpertWeights;
  readonly intervals: PredictionIntervals;
  /** Fills the mixture of the experts for these rows. */
  mix(estimates: TargetEstimates, batch: Batch, mixture: Mixture): void;
  /** Fills the mixture with the trained model's predictions alone. For use before the first report. */
  useModelOnly(estimates: TargetEstimates, batch: Batch, mixture: Mixture): void;
  /** Writes one statistic of each row of a mixture. */
  fillStatistic(batch: Batch, mixture: Mixture, column: StatisticColumn): void;
  /** Forecasts row 0 of a call, the only row of the batch; `mixture` is filled on the way. */
  forecast(estimates: TargetEstimates, batch: Batch, options: ForecastOptions): TargetForecast;
  observe(forecast: TargetForecast, key: ServerKey, observed: CertainTime): void;
  /** Updates only the residuals of servers, relative to what this model would have predicted. */
  replay(estimate: Estimate, key: ServerKey, observedMs: number): void;
  /** Predicts with another model from now on; what was learned about servers stays. */
  replaceModel(model: TimeModel): void;
  /** Must be called before this number is given to another server. */
  forgetServer(server: number): void;
}

export interface ForecastOptions {
  readonly mixture: Mixture;
  /** The weights of the experts, if not those of the server now. */
  readonly weights?: readonly number[] | undefined;
  /** The earlier state that the interval is computed with, if not the present one. */
  readonly asOf?: DatedState | undefined;
}

export interface TargetPredictorOptions {
  readonly tracker: ResidualTracker;
  /** The pod type as `normalizePodType` writes it. */
  readonly podType: string;
  readonly initial: TimeModel;
}

export function createTargetPredictor(target: PredictionTarget, options: TargetPredictorOptions): TargetPredictor {
  const { tracker, podType, initial } = options;
  const intervals = createPredictionIntervals(target, initial.calibration);
  const weights = createExpertWeights(() => intervals.delays.feedbackDelay);
  const signals: BaseSignals = { physics: signalOf(target, 'physics'), trees: signalOf(target, 'trees') };
  const observeResiduals = createResidualObserver(tracker, signals);
  const queueCheck = createStalledQueueCheck(target);
  let offsets = createLiveOffsets(initial.offsets, podType, tracker.servers);

  const mixExperts = createExpertMixer({ tracker, weights, signals });
  const mix = (estimates: TargetEstimates, batch: Batch, options: ForecastOptions): void => {
    mixExperts(estimates, batch, options);
    multiplyPhysics(estimates, batch, { mixture: options.mixture, offsets });
  };

  return {
    weights,
    intervals,
    mix(estimates, batch, mixture) {
      mix(estimates, batch, { mixture });
      queueCheck.raise(mixture.timesMs, batch);
    },
    useModelOnly(estimates, batch, mixture) {
      copyTreeLogs(estimates, batch, mixture);
      multiplyPhysics(estimates, batch, { mixture, offsets });
      queueCheck.raise(mixture.timesMs, batch);
    },
    fillStatistic({ count, rows, servers, queueBounds }, { timesMs }, column) {
      const leastMs = queueCheck.quantileBounds(queueBounds);
      intervals.fill({ count, rows, servers, leastMs, mixtureMs: timesMs }, column);
    },
    forecast(estimates, batch, options) {
      const { mixture } = options;
      mix(estimates, batch, options);
      const queueBound = readBound(batch, mixture);
      queueCheck.raise(mixture.timesMs, batch);
      const server = batch.servers[0]!;
      const leastMs = queueCheck.quantileBounds(batch.queueBounds)?.[0];
      const interval = intervals.predictInterval(mixture.timesMs[0]!, server, { leastMs, asOf: options.asOf });
      const used = { weights: options.weights ?? [...weights.weightsOf(server)], interval, queueBound };
      return describeForecast(readEstimate(estimates, 0), mixture, { offset: offsets.read(server), ...used });
    },
    observe({ logPhysics, logTrees, expertLogs, mixtureMs, interval, queueBound }, key, { observedMs, certainty }) {
      const observedLog = Math.log(observedMs);
      queueCheck.observe(queueBound, observedMs);
      intervals.observe(interval, key.server, observedLog - Math.log(mixtureMs));
      weights.observe(key.server, { predictions: expertLogs, observedLog, certainty });
      observeResiduals(key, { physics: observedLog - logPhysics, trees: observedLog - logTrees }, certainty);
    },
    replay: ({ physicsMs, treeLog }, key, observedMs) => {
      const physics = Math.log(observedMs) - offsets.read(key.server) - Math.log(physicsMs);
      observeResiduals(key, { physics, trees: physics - treeLog }, 1);
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

interface MixerDependencies {
  readonly tracker: ResidualTracker;
  readonly weights: ExpertWeights;
  readonly signals: BaseSignals;
}

/** Fills the experts, adds the mean residuals of the rows' servers, and mixes them by their weights. */
function createExpertMixer({ tracker, weights, signals }: MixerDependencies) {
  const adjusted = listAdjusted(signals);
  return (estimates: TargetEstimates, batch: Batch, { mixture, weights: given }: ForecastOptions): void => {
    startExperts(estimates, batch, mixture);
    for (const expert of adjusted) tracker.addExpected(batch, expert, mixture.expertLogFactors);
    weights.mix(batch, mixture, given);
  };
}

/** The bound of row 0, and its prediction before it is raised to that. */
function readBound({ queueBounds }: Batch, { timesMs }: Mixture): ForecastBound {
  return { leastMs: queueBounds.leastMs[0]!, predictedMs: timesMs[0]! };
}

/** Observes the residuals of one time at a server, of both bases: physics and trees. */
function createResidualObserver(tracker: ResidualTracker, signals: BaseSignals) {
  return (key: ServerKey, residuals: Readonly<Record<ResidualBase, number>>, certainty: number): void => {
    tracker.observe(key, signals.physics, { residual: residuals.physics, certainty });
    tracker.observe(key, signals.trees, { residual: residuals.trees, certainty });
  };
}

type BaseSignals = Readonly<Record<ResidualBase, number>>;

function listAdjusted(signals: BaseSignals): AdjustedExpert[] {
  return EXPERTS.flatMap(({ base, speed }, position) =>
    speed === undefined ? [] : [{ position, signal: signals[base], speed }],
  );
}

const TREE_SHARES = Float64Array.from(EXPERTS, ({ base }) => (base === 'trees' ? 1 : 0));

/** The experts without mean residuals, as logarithms of factors of physics: 0 for physics itself, the trees' factor for trees. */
function startExperts({ treeLogs }: TargetEstimates, { count, rows }: Batch, { expertLogFactors }: Mixture): void {
  for (let n = 0; n < count; n++) {
    const treeLog = treeLogs[rows[n]!]!;
    for (let e = 0; e < EXPERT_COUNT; e++) expertLogFactors[n * EXPERT_COUNT + e] = TREE_SHARES[e]! * treeLog;
  }
}

function copyTreeLogs({ treeLogs }: TargetEstimates, { count, rows }: Batch, { logFactors }: Mixture): void {
  for (let n = 0; n < count; n++) logFactors[n] = treeLogs[rows[n]!]!;
}

/** The times of the mixture: physics × the mixed factor × the factor of the server's offset. */
function multiplyPhysics(
  { physicsMs }: TargetEstimates,
  { count, rows, servers }: Batch,
  { mixture, offsets }: { readonly mixture: Mixture; readonly offsets: LiveOffsets },
): void {
  const { logFactors, timesMs } = mixture;
  offsets.addTo(logFactors, servers, count);
  for (let n = 0; n < count; n++) timesMs[n] = clampMs(physicsMs[rows[n]!]! * Math.exp(logFactors[n]!));
}

/** `mixture` has one row. */
function describeForecast(
  { physicsMs, treeLog }: Estimate,
  mixture: Mixture,
  { offset, ...used }: Pick<TargetForecast, 'weights' | 'interval' | 'queueBound'> & { readonly offset: number },
): TargetForecast {
  const mixtureMs = mixture.timesMs[0]!;
  const logPhysics = Math.log(physicsMs) + offset;
  const logTrees = logPhysics + treeLog;
  const expertLogs = EXPERTS.map((_, expert) => logPhysics + mixture.expertLogFactors[expert]!);
  const medianMs = quantileMs('p50', mixtureMs, used.interval);
  return { logPhysics, logTrees, expertLogs, mixtureMs, medianMs, ...used };
}

/**
 * Moves a forecast to another model. Its experts and the residuals are those of the new model, since the residuals of one model
 * say nothing about another; the median and the quantiles in milliseconds stay as they were predicted.
 */
export function renewForecast({ medianMs, interval }: TargetForecast, renewed: TargetForecast): TargetForecast {
  return { ...renewed, medianMs, interval: translateInterval(interval, renewed.interval) };
}

/** The forecast p90: the time that nine of ten such requests should stay below. */
export function forecastP90Ms({ mixtureMs, interval }: TargetForecast): number {
  return quantileMs('p90', mixtureMs, interval);
}
