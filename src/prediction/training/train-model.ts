/** Trains a model on a table of observations, pod type by pod type; the same rows give the same model. */

import { type Binning, binRows, fitBinning } from '../gbdt/binning.ts';
import { createEvaluator } from '../gbdt/evaluate.ts';
import { type BoostOptions, DEFAULT_BOOST_OPTIONS, type TrainingSet, trainForest } from '../gbdt/training/boost.ts';
import type { Forest } from '../gbdt/tree.ts';
import { calibrate, median, type Statistic } from '../model/calibration.ts';
import { constrainTrees } from '../model/features.ts';
import type {
  LatencyModel,
  LearningParameters,
  SlotModels,
  SlotOffsets,
  TimeModel,
  Validation,
} from '../model/model.ts';
import { MAX_POD_TYPE_MODELS } from '../model/model-header.ts';
import { fitServerOffsets, readRowOffsets, type ServerOffsets } from '../model/server-offsets.ts';
import { fitPhysics, type PhysicsModel } from '../physics/physics.ts';
import { clampMs } from '../schema/milliseconds.ts';
import {
  type ObservationTable,
  observedTimes,
  PREDICTION_TARGETS,
  type PredictionTarget,
  rowsWith,
  selectRows,
} from '../schema/observation-table.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { addBlankedRows } from './blanked-rows.ts';
import { computeMatrix, computeSamples, type Samples, toColumns } from './samples.ts';
import { listCertainties, predictPhysics, trainPhysics } from './train-physics.ts';

export interface TrainParameters {
  readonly statistic: Statistic;
  readonly trees: Partial<BoostOptions>;
}

/** The absolute loss on logarithms makes the answer a median, and gives a few outliers little influence. */
export const DEFAULT_TRAINING: TrainParameters = {
  statistic: 'p50',
  trees: { trees: 200, depth: 6, learningRate: 0.2, l2: 3, loss: { kind: 'absolute' }, splitClip: 3 },
};

/** A pod type with fewer rows than this gets no slot: the pooled model answers better. */
const MIN_SLOT_ROWS = 50;
/** A target with fewer rows than this is answered by the prior, which is fitted to reports until then. */
export const MIN_TARGET_ROWS = 20;
/** With fewer rows than this there are no trees, and physics answers alone. */
const MIN_FOREST_ROWS = 40;
/** With more rows than this, the validated model is kept instead of being trained again on all rows. */
const MAX_REFIT_ROWS = 30_000;
/** Training of trees stops after this many without a gain on held-out rows. */
const PATIENCE = 40;
const VALIDATION_SHARE = 0.2;
/** Its multiples modulo 1 are spread evenly, also those of every second or fifth row. */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

export type Progress = (text: string) => void;

export function trainModel(
  id: string,
  table: ObservationTable,
  parameters: TrainParameters = DEFAULT_TRAINING,
  onProgress: Progress = () => {},
): LatencyModel {
  const rowsByPodType = groupByPodType(table);
  const pooled = trainSlot(table, parameters, (target) => onProgress(`${target} of ${table.count} rows`));
  const slots = new Map<string, SlotModels>();
  if (rowsByPodType.size > 1)
    for (const [podType, rows] of pickPodTypes(rowsByPodType)) {
      const name = podType === '' ? 'aggregate' : podType;
      const onTarget = (target: PredictionTarget) => onProgress(`${target} of ${rows.length} ${name} rows`);
      slots.set(podType, trainSlot(selectRows(table, rows), parameters, onTarget));
    }
  return { id, statistic: parameters.statistic, parameters: listParameters(parameters.trees), slots, pooled };
}

/** All parameters, defaults included, except `kernel`, which does not change the result. */
function listParameters(trees: Partial<BoostOptions>): LearningParameters {
  const { kernel: _, ...parameters } = { ...DEFAULT_BOOST_OPTIONS, ...trees };
  return parameters;
}

function groupByPodType(table: ObservationTable): Map<string, number[]> {
  const rowsByPodType = new Map<string, number[]>();
  for (let i = 0; i < table.count; i++) {
    const podType = normalizePodType(table.podTypes[table.podType[i]!]!);
    const rows = rowsByPodType.get(podType);
    if (rows === undefined) rowsByPodType.set(podType, [i]);
    else rows.push(i);
  }
  return rowsByPodType;
}

/** Callers may send any pod type, so those with the most rows get a slot, up to the limit of a model. */
function pickPodTypes(rowsByPodType: ReadonlyMap<string, number[]>): [string, number[]][] {
  return [...rowsByPodType]
    .filter(([, rows]) => rows.length >= MIN_SLOT_ROWS)
    .sort(([, left], [, right]) => right.length - left.length)
    .slice(0, MAX_POD_TYPE_MODELS);
}

function trainSlot(
  table: ObservationTable,
  parameters: TrainParameters,
  onTarget: (target: PredictionTarget) => void,
): SlotModels {
  const all = splitRows(table, () => true);
  const learned = splitRows(table, (i) => !isHeldOut(i));
  const heldOut = splitRows(table, isHeldOut);
  const keepsPartialFit = table.count > MAX_REFIT_ROWS;
  const partialOffsets = fitSlotOffsets(learned);
  // The offsets that are served are the ones that the trees were trained with.
  const slotOffsets = keepsPartialFit ? partialOffsets : fitSlotOffsets(all);
  const binning = fitBinning(toColumns(computeMatrix(table, slotOffsets)));
  const settings = { binning, trees: parameters.trees, keepsPartialFit };
  const models: Partial<Record<PredictionTarget, TimeModel>> = {};
  for (const target of PREDICTION_TARGETS) {
    if (all[target].count < MIN_TARGET_ROWS) continue;
    onTarget(target);
    const samples = computeSamples(target, all[target], slotOffsets);
    const ofLearned = computeSamples(target, learned[target], partialOffsets);
    const ofHeldOut = computeSamples(target, heldOut[target], partialOffsets);
    models[target] = trainTarget(target, { samples, learned: ofLearned, heldOut: ofHeldOut }, settings);
  }
  return models;
}

/** The rows that have each target. */
type TargetRows = Readonly<Record<PredictionTarget, ObservationTable>>;

/** Selects rows for each target: numbers the rows that have the target, and keeps the numbers that `isPicked` accepts. */
function splitRows(table: ObservationTable, isPicked: (position: number) => boolean): TargetRows {
  const pick = (target: PredictionTarget) =>
    selectRows(
      table,
      rowsWith(table, target).filter((_, i) => isPicked(i)),
    );
  return { ttft: pick('ttft'), tpot: pick('tpot') };
}

function fitSlotOffsets(rows: TargetRows): SlotOffsets {
  const fit = (target: PredictionTarget) => {
    const table = rows[target];
    return fitServerOffsets({ target, table, observed: observedTimes(table, target).slice(0, table.count) });
  };
  return { ttft: fit('ttft'), tpot: fit('tpot') };
}

interface SplitSamples {
  readonly samples: Samples;
  readonly learned: Samples;
  readonly heldOut: Samples;
}

interface TreeSettings {
  readonly binning: Binning;
  readonly trees: Partial<BoostOptions>;
  /** Serves the fit without the held-out rows, instead of a second fit on all rows, which takes long for a large table. */
  readonly keepsPartialFit: boolean;
}

function trainTarget(
  target: PredictionTarget,
  { samples, learned, heldOut }: SplitSamples,
  settings: TreeSettings,
): TimeModel {
  const rows = samples.table.count;
  if (rows < MIN_FOREST_ROWS) return trainPhysics(target, samples.table);
  const partial = fitLayers(target, learned, settings, heldOut);
  const forestShare = chooseShare(partial, heldOut);
  const predicted = predictWith(partial, forestShare, heldOut);
  const calibration = calibrate(predicted, heldOut.observed);
  const validation = validate(predicted, heldOut.observed);
  // The forest gets as many trees as improved the held-out rows, and a tenth more, since it is trained on more rows.
  const trees = { ...settings.trees, trees: Math.max(1, Math.round(1.1 * partial.forest.treeCount)) };
  const layers = settings.keepsPartialFit ? partial : fitLayers(target, samples, { ...settings, trees });
  return { rows, ...layers, forestShare, calibration, validation };
}

function validate(predicted: Float64Array, observed: Float64Array): Validation {
  const errors = predicted.map((value, i) => (100 * Math.abs(value - observed[i]!)) / observed[i]!).sort();
  const mape = errors.reduce((sum, error) => sum + error, 0) / errors.length;
  return { rows: errors.length, mape, mdape: median(errors) };
}

interface Layers {
  readonly offsets: ServerOffsets;
  readonly slotOffsets: SlotOffsets;
  readonly physics: PhysicsModel;
  readonly treeBaseMs: number;
  readonly forest: Forest;
}

/** Fits physics and trees. With held-out rows, trees are added only as long as these are predicted better. */
function fitLayers(
  target: PredictionTarget,
  samples: Samples,
  { binning, trees }: TreeSettings,
  heldOut?: Samples,
): Layers {
  const { table, slotOffsets } = samples;
  const offsets = slotOffsets[target];
  const offset = readRowOffsets(offsets, table);
  const observed = samples.observed.map((value, i) => value * Math.exp(-offset[i]!));
  const physics = fitPhysics(target, table, observed, { weights: listCertainties(target, table) });
  const base = { offsets, physics, treeBaseMs: chooseTreeBase(physics, samples) };
  const stopping = heldOut && { validation: prepareRows(base, heldOut, binning), patience: PATIENCE };
  const options = { ...trees, ...constrainTrees(target) };
  const prepared = prepareRows(base, samples, binning);
  // Trees of TPOT have no splits on the history.
  const forest = trainForest(target === 'ttft' ? addBlankedRows(prepared) : prepared, options, stopping);
  return { ...base, slotOffsets, forest };
}

/** Twice the time that physics predicts for a nearly idle server. A larger base is better for short times, and worse for busy servers. */
function chooseTreeBase(physics: PhysicsModel, samples: Samples): number {
  if (physics.target !== 'ttft') return 0;
  const predicted = predictPhysics(physics, samples.table).sort();
  return 2 * predicted[Math.floor(0.02 * predicted.length)]!;
}

/** The target of the trees: log(observed / (physics + `treeBaseMs`)), less the offset of the server. */
function prepareRows(
  layers: Pick<Layers, 'offsets' | 'physics' | 'treeBaseMs'>,
  samples: Samples,
  binning: Binning,
): TrainingSet {
  const offset = readRowOffsets(layers.offsets, samples.table);
  const expected = predictPhysics(layers.physics, samples.table);
  const target = samples.observed.map((value, i) => Math.log(value / (expected[i]! + layers.treeBaseMs)) - offset[i]!);
  const certainty = listCertainties(layers.physics.target, samples.table);
  return {
    rows: binRows(binning, toColumns(samples.features)),
    target,
    weights: target.map((ratio, i) => weighRatio(ratio) * certainty[i]!),
  };
}

/** The logarithm of the largest weight of a ratio: e^1.5 times that of an ordinary one. */
const MAX_LOG_WEIGHT = 1.5;

/** Errors count relative to the observed time, so the error of a time that is shorter than expected weighs more. */
function weighRatio(logRatio: number): number {
  return Math.exp(Math.max(-MAX_LOG_WEIGHT, Math.min(MAX_LOG_WEIGHT, -logRatio)));
}

/** Chooses the share of the trees' correction with the least absolute log error on held-out rows. */
function chooseShare(layers: Layers, heldOut: Samples): number {
  let best = { share: 0, error: Number.POSITIVE_INFINITY };
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const predicted = predictWith(layers, share, heldOut);
    let error = 0;
    for (let i = 0; i < predicted.length; i++) error += Math.abs(Math.log(heldOut.observed[i]! / predicted[i]!));
    if (error < best.error) best = { share, error };
  }
  return best.share;
}

function predictWith({ offsets, physics, treeBaseMs, forest }: Layers, share: number, samples: Samples): Float64Array {
  const offset = readRowOffsets(offsets, samples.table);
  const byPhysics = predictPhysics(physics, samples.table);
  const predicted = byPhysics.map((value, i) => clampMs(value * Math.exp(offset[i]!)));
  const { count } = samples.table;
  if (count === 0 || share === 0) return predicted;
  const evaluator = createEvaluator([forest], { capacity: count });
  for (const [f, column] of toColumns(samples.features).entries()) evaluator.values.set(column, f * evaluator.capacity);
  evaluator.evaluate(count);
  const sums = evaluator.outputs[0]!;
  return predicted.map((value, i) =>
    clampMs(value * Math.exp(share * (sums[i]! + Math.log1p(treeBaseMs / byPhysics[i]!)))),
  );
}

/**
 * A fifth of the rows is held out, spread so that both parts have every load and every period. It is not every fifth row: if
 * servers take turns, these may all be rows of one server.
 */
function isHeldOut(position: number): boolean {
  return (position * GOLDEN_RATIO) % 1 < VALIDATION_SHARE;
}
