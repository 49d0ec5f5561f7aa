/**
 * Serves a target model: the trained model, adjusted by reported times. A call is answered synchronously; a reported time
 * updates the state in a few microseconds. A new version replaces the trained model between two calls. Weights of experts, quantiles
 * and histories stay; residuals are relative to a version, so they are computed again from the newest rows.
 */

import { realWorld, type World } from '../../world.ts';
import { createServerHistories, type ServerHistories } from '../history/server-histories.ts';
import type { LatencyModel } from '../model/model.ts';
import type { TargetEstimates } from '../model/slot-evaluator.ts';
import { certaintyOf } from '../schema/answer-certainty.ts';
import type { AnswerStatistic, PredictColumns, PredictedColumns } from '../schema/columns.ts';
import { type MetricColumns, PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import type { ServerIndex } from '../schema/server-index.ts';
import {
  createBasisReader,
  createEarlyPhysics,
  fitPriors,
  listUnlearned,
  restorePriors,
  savePriors,
} from './early-physics.ts';
import { createForecasts, type Forecast } from './forecasts.ts';
import { createMoments, readKnown } from './known-before.ts';
import { FIRST_CAPACITY } from './live-slot.ts';
import type { Observed } from './moments/moment-ring.ts';
import { createPodTypeNumbers, type PodTypeNumbers } from './names/pod-type-numbers.ts';
import { createRecentRows, type RecentRow } from './recent-rows.ts';
import { beginAgain, beginWithoutRestored, estimateRows, type ReplayedParts, type RowEstimates } from './replay.ts';
import { createResidualTracker, type ServerKey } from './residual-tracker.ts';
import { createCallResolver, listSlots, selectRows } from './resolved-call.ts';
import { type LiveModelState, restoreLiveModel, type SavedLiveModel, saveLiveModel } from './saved-live-model.ts';
import { createBatch, createMixture } from './slot-batch.ts';
import { createSlotTable } from './slot-table.ts';
import { fillStalledQueueBounds } from './stalled-queue/stalled-queue-bounds.ts';
import type { TargetPredictor } from './target-predictor.ts';

export interface LiveModel {
  readonly model: LatencyModel;
  readonly servers: ServerIndex;
  /** The recent reports of each server, by its number, from which `predict` derives the history inputs. */
  readonly histories: ServerHistories;
  /** Fills `predicted` for the first `columns.count` rows. */
  predict(columns: PredictColumns, predicted: PredictedColumns): void;
  /** Fills each of `outputs` with its statistic of the same rows. */
  predictStatistics(columns: PredictColumns, outputs: readonly StatisticColumns[]): void;
  /**
   * The prediction for one row, to be compared with the time that will be observed. With `sentMs`, it is the prediction as of
   * that time of day, for a request without a forecast at its dispatch: mean residuals, weights and quantiles are those of that
   * time.
   */
  forecast(columns: MetricColumns, podType: string, server: Uint8Array, sentMs?: number): Forecast;
  /**
   * Returns the forecast as one of this live model. A forecast is marked to be made again if another live model made it (such as
   * the one that untrained names share), or if the number of its server was given to another server.
   */
  adopt(forecast: Forecast): Forecast;
  observe(forecast: Forecast, target: PredictionTarget, observed: ObservedTime): void;
  replaceModel(model: LatencyModel): void;
  /** Replaces the model in steps, between which the old model answers. A caller that stops early leaves the old model in place. */
  prepareSwap(model: LatencyModel): Iterable<void>;
  /** The parts that learn from reports, which `sharing/` exchanges with other processes. */
  readonly learning: LearningState;
  save(): SavedLiveModel;
  restore(saved: SavedLiveModel): void;
}

/** The parts of a live model that learn from reports, and how to find and open them. */
export interface LearningState extends LiveModelState {
  /** Names the predictions that the residuals of a target are relative to: the served version, or a prior that this process fitted. */
  basisOf(target: PredictionTarget): string;
  slotKeyOf(podType: string): string;
  ensureSlot(key: string): void;
  /** Calls the listener with the keys of the slots that a swap closes. Returns a function that removes the listener. */
  onCloseSlots(listener: (keys: ReadonlySet<string>) => void): () => void;
  /** The number of a pod type, by which its means are kept; 0 when all numbers are taken. */
  registerPodType(podType: string): number;
  /** Computes the means of a target again, without the rows that came with a saved state. */
  replayOwn(target: PredictionTarget): void;
}

/** A statistic, and the columns that its answers are written to. */
export interface StatisticColumns {
  readonly statistic: AnswerStatistic;
  readonly predicted: PredictedColumns;
}

/** An observed time. The longer the answer, the more certain its time per token. */
export interface ObservedTime {
  readonly observedMs: number;
  readonly outputTokens?: number | undefined;
}

/** Marks a forecast that must be made again, as of the oldest note, before its times are learned. */
const FORECAST_BEFORE_ALL = { swaps: -1, observedTimes: 0 };

const MAX_SERVERS = 8192;
/** Pod types beyond these share a number: callers may send any text. */
const MAX_POD_TYPES = 16;

export function createLiveModel(initial: LatencyModel, world: Pick<World, 'nowMs'> = realWorld): LiveModel {
  const podTypes = createPodTypeNumbers(MAX_POD_TYPES);
  const tracker = createResidualTracker({ maxServers: MAX_SERVERS, maxPodTypes: MAX_POD_TYPES });
  const table = createSlotTable(initial, { tracker, podTypes });
  const parts = { tracker, recent: createRecentRows(tracker.servers), moments: createMoments(), table };
  const histories = createServerHistories(tracker.servers);
  const predictCall = createCallPredictor({ table, podTypes, index: tracker.servers }, (columns, servers) =>
    histories.fill(columns, servers, world.nowMs()),
  );
  const forecasts = createForecasts(parts);
  const { ensureKey, adopt } = createServerKeys(tracker.servers, podTypes);
  const early = createEarlyPhysics();
  let hasObserved = false;

  // `sharing/` opens a slot when another process has observed times for it.
  const learning = createLearningState({ podTypes, ...parts }, () => {
    hasObserved = true;
  });

  function* prepareSwap(next: LatencyModel): Generator<void, void> {
    const rows = parts.recent.list();
    const known: RowEstimates = new Map();
    const fitted = fitPriors(next, rows, { present: table.model });
    yield* table.prepareSwap(fitted, (prepared) => estimateRows(rows, { ...prepared, known }));
    beginAgain(parts, PREDICTION_TARGETS, known);
  }

  return {
    get model() {
      return table.model;
    },
    servers: tracker.servers,
    histories,
    predict: (columns, predicted) =>
      predictCall(columns, [{ statistic: table.model.statistic, predicted }], hasObserved),
    predictStatistics: (columns, outputs) => predictCall(columns, outputs, hasObserved),
    forecast: (columns, podType, address, sentMs) =>
      forecasts.forecastRow(columns, { podType, key: ensureKey(podType, address), sentMs }),
    adopt,
    observe(given, target, { observedMs, outputTokens }) {
      hasObserved = true;
      const forecast = adopt(given);
      const { key, podType, metrics } = forecast;
      const served = forecasts.renew(forecast, target);
      // An adopted forecast does not say when its request was sent.
      const sentAfter = forecast.swaps === FORECAST_BEFORE_ALL.swaps ? undefined : forecast.observedTimes;
      noteRow(parts, { key, podType, metrics, target, observedMs }, { knownMs: world.nowMs(), sentAfter });
      table.find(podType, 1)[target].observe(served, key, { observedMs, certainty: certaintyOf(target, outputTokens) });
      // 7 times in the first 256 rows, then every 512 rows until the first training.
      if (early.isDue(target, table.model)) fitPriorsAgain(parts, [target]);
    },
    replaceModel(next) {
      for (const _ of prepareSwap(next));
    },
    prepareSwap,
    learning,
    save: () => ({ version: table.model.id, priors: savePriors(table.model), ...saveLiveModel(learning) }),
    restore(saved) {
      for (const podType of saved.podTypes) podTypes.register(podType);
      for (const { podType } of saved.slots) if (table.keyOf(podType) === podType) table.ensure(podType);
      restoreLiveModel(saved, learning);
      restorePredictions(parts, saved);
      hasObserved ||= saved.slots.length > 0;
    },
  };
}

function createServerKeys(servers: ServerIndex, podTypes: PodTypeNumbers) {
  function ensureKey(podType: string, address: Uint8Array): ServerKey {
    podTypes.register(podType);
    const server = servers.ensure(address);
    return { server, address: servers.addressOf(server), podType: podTypes.numberOf(podType) };
  }

  function adopt(forecast: Forecast): Forecast {
    const { podType, key } = forecast;
    if (key.address === undefined || key.address === servers.addressOf(key.server)) return forecast;
    return { ...forecast, ...FORECAST_BEFORE_ALL, key: ensureKey(podType, key.address) };
  }

  return { ensureKey, adopt };
}

/** Keeps the row for a replay, with what is known before it is learned. */
function noteRow({ tracker, recent, moments, table }: ReplayedParts, row: RecentRow, when: Observed): void {
  const { key, podType, target } = row;
  const owners = { target, address: key.address, podType: key.podType, slot: table.keyOf(podType) };
  recent.add({ ...row, moment: moments.observedTimes });
  moments.add(owners, when, readKnown(table.find(podType, 1)[target], tracker, row));
}

/** Runs all steps at once, which takes a few milliseconds. The means of other targets stay, since their predictions did not change. */
function fitPriorsAgain(parts: ReplayedParts, targets: readonly PredictionTarget[]): void {
  const { recent, table } = parts;
  const fitted = fitPriors(table.model, recent.list(), { targets });
  if (fitted === table.model) return;
  for (const _ of table.prepareSwap(fitted));
  beginAgain(parts, targets);
}

/** Serves the saved priors. Means begin again where they were saved by another version, or by a release that saved no priors. */
function restorePredictions(parts: ReplayedParts, { version, priors = {} }: SavedLiveModel): void {
  const { moments, recent, table } = parts;
  const unlearned = listUnlearned(table.model);
  const isServed = version === undefined || version === table.model.id;
  const targets = isServed ? unlearned.filter((target) => priors[target] === undefined) : PREDICTION_TARGETS;
  const fitted = fitPriors(restorePriors(table.model, priors), recent.list(), { targets });
  if (fitted !== table.model) for (const _ of table.prepareSwap(fitted));
  for (const target of unlearned) moments.outdateMeans(target);
  beginAgain(parts, targets);
}

interface LearningDependencies extends ReplayedParts {
  readonly podTypes: PodTypeNumbers;
}

function createLearningState(parts: LearningDependencies, onOpen: () => void): LearningState {
  const { podTypes, tracker, recent, table } = parts;
  return {
    podTypes: podTypes.names,
    tracker,
    recent,
    basisOf: createBasisReader(() => table.model),
    slots: table.slots,
    slotKeyOf: (podType) => table.keyOf(podType),
    ensureSlot(key) {
      table.ensure(key);
      onOpen();
    },
    onCloseSlots: (listener) => table.onClose(listener),
    registerPodType(podType) {
      podTypes.register(podType);
      return podTypes.numberOf(podType);
    },
    replayOwn: (target) => beginWithoutRestored(parts, target),
  };
}

type CallPredictor = (
  columns: PredictColumns,
  outputs: readonly StatisticColumns[],
  /** False before the first report: the trained model then answers alone. */
  hasObserved: boolean,
) => void;

/** Reuses its batch and mixture, which hold nothing between two calls. */
function createCallPredictor(
  options: Parameters<typeof createCallResolver>[0],
  fillHistory: (columns: PredictColumns, servers: Int32Array) => void,
): CallPredictor {
  const resolver = createCallResolver(options);
  let batch = createBatch(FIRST_CAPACITY);
  let mixture = createMixture(FIRST_CAPACITY);

  function fillTarget(target: TargetPredictor, estimates: TargetEstimates, hasObserved: boolean): void {
    if (hasObserved) target.mix(estimates, batch, mixture);
    else target.useModelOnly(estimates, batch, mixture);
  }

  return (columns, outputs, hasObserved) => {
    if (batch.rows.length < columns.count) {
      batch = createBatch(columns.capacity);
      mixture = createMixture(columns.capacity);
    }
    const call = resolver.resolve(columns);
    fillHistory(columns, call.servers);
    fillStalledQueueBounds(columns, batch.queueBounds);
    for (const slot of listSlots(call)) {
      const { ttft, tpot } = slot.estimate(columns, call.servers);
      selectRows(batch, call, slot);
      fillTarget(slot.ttft, ttft, hasObserved);
      for (const { statistic, predicted } of outputs)
        slot.ttft.fillStatistic(batch, mixture, { statistic, timesMs: predicted.ttftMs });
      fillTarget(slot.tpot, tpot, hasObserved);
      for (const { statistic, predicted } of outputs)
        slot.tpot.fillStatistic(batch, mixture, { statistic, timesMs: predicted.tpotMs });
    }
  };
}
