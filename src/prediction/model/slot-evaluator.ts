/** Estimates both targets of one slot: computes and bins the features once, then evaluates the physics and trees of each target. */

import { createEvaluator } from '../gbdt/evaluate.ts';
import type { Evaluator } from '../gbdt/evaluator.ts';
import { evaluatePhysics } from '../physics/physics.ts';
import { clampMs } from '../schema/milliseconds.ts';
import { type MetricColumns, PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import { type Statistic, statisticOffset } from './calibration.ts';
import { computeFeatures, FEATURE_COUNT, OFFSET_FEATURES } from './features.ts';
import { createImportedEvaluator } from './imported-trees.ts';
import type { SlotOffsets, TimeModel } from './model.ts';
import { NO_OFFSETS, type ServerOffsets } from './server-offsets.ts';

/** One target's estimates, row by row. The arrays are valid until the next call of the evaluator. */
export interface TargetEstimates {
  /** The estimate of physics alone, in milliseconds. */
  readonly physicsMs: Float64Array;
  /** The logarithm of the factor by which the trees multiply it, scaled by the share that held-out rows support (`forestShare`). */
  readonly treeLogs: Float64Array;
}

export type SlotEstimates = Readonly<Record<PredictionTarget, TargetEstimates>>;

export interface SlotEvaluator {
  readonly models: Readonly<Record<PredictionTarget, TimeModel>>;
  /** The most rows of one call. */
  readonly capacity: number;
  /** The server offsets that the trees take as inputs: `evaluate` needs one column for each of them, in this order. */
  readonly offsetInputs: readonly ServerOffsets[];
  /** Estimates all rows; `columns.count` must not be above the capacity. */
  evaluate(columns: MetricColumns, offsetColumns: readonly ArrayLike<number>[]): SlotEstimates;
}

export function createSlotEvaluator(ttft: TimeModel, tpot: TimeModel, capacity: number): SlotEvaluator {
  const trees = connectTrees(ttft, tpot, capacity);
  const stride = trees.values.length / FEATURE_COUNT;
  const estimates = { ttft: createEstimates(capacity), tpot: createEstimates(capacity) };
  const estimateTtft = connectTarget(ttft, estimates.ttft, trees.ttft);
  const estimateTpot = connectTarget(tpot, estimates.tpot, trees.tpot);
  return {
    models: { ttft, tpot },
    capacity,
    offsetInputs: trees.offsetInputs.map(({ offsets }) => offsets),
    evaluate(columns, offsetColumns) {
      computeFeatures(columns, trees.values, stride);
      for (const [i, { into }] of trees.offsetInputs.entries()) copyColumn(offsetColumns[i]!, into, columns.count);
      trees.evaluate(columns.count);
      estimateTtft(columns);
      estimateTpot(columns);
      return estimates;
    },
  };
}

function createEstimates(capacity: number): TargetEstimates {
  return { physicsMs: new Float64Array(capacity), treeLogs: new Float64Array(capacity) };
}

function copyColumn(from: ArrayLike<number>, into: Float32Array, count: number): void {
  for (let i = 0; i < count; i++) into[i] = from[i]!;
}

interface Trees {
  readonly values: Float32Array;
  readonly offsetInputs: readonly OffsetInput[];
  readonly ttft: Float64Array | undefined;
  readonly tpot: Float64Array | undefined;
  evaluate(count: number): void;
}

/** A column among the features, and the server offsets that are written into it. */
interface OffsetInput {
  readonly offsets: ServerOffsets;
  readonly into: Float32Array;
}

const OFFSETS_AT = Math.min(...Object.values(OFFSET_FEATURES));
const ALL_ALIKE: SlotOffsets = { ttft: NO_OFFSETS, tpot: NO_OFFSETS };

function connectTrees(ttft: TimeModel, tpot: TimeModel, capacity: number): Trees {
  const first = believedForest(ttft);
  const second = believedForest(tpot);
  if (first !== undefined && second?.binning === first.binning) {
    const both = createEvaluator([first, second], { capacity });
    const [ttftSums, tpotSums] = both.outputs;
    const offsetInputs = listOffsetInputs(ttft, both);
    return {
      values: both.values,
      offsetInputs,
      ttft: ttftSums,
      tpot: tpotSums,
      evaluate: (count) => both.evaluate(count),
    };
  }
  const own = first && createEvaluator([first], { capacity });
  const other = second && createEvaluator([second], { capacity });
  const stride = (own ?? other)?.capacity ?? capacity;
  const values = own?.values ?? other?.values ?? new Float32Array(FEATURE_COUNT * capacity);
  return {
    values,
    offsetInputs: [...listOffsetInputs(ttft, own), ...listOffsetInputs(tpot, other)],
    ttft: own?.outputs[0],
    tpot: other?.outputs[0],
    evaluate(count) {
      // All features but the offsets: each model has its own.
      if (other !== undefined && other.values !== values) other.values.set(values.subarray(0, OFFSETS_AT * stride));
      own?.evaluate(count);
      other?.evaluate(count);
    },
  };
}

/** Trees that were trained without server offsets saw 0 for every server, so their columns stay 0. */
function listOffsetInputs({ slotOffsets = ALL_ALIKE }: TimeModel, evaluator: Evaluator | undefined): OffsetInput[] {
  if (evaluator === undefined) return [];
  const { values, capacity } = evaluator;
  return PREDICTION_TARGETS.filter((target) => slotOffsets[target].servers.size > 0).map((target) => {
    const start = OFFSET_FEATURES[target] * capacity;
    return { offsets: slotOffsets[target], into: values.subarray(start, start + capacity) };
  });
}

/** Fills a target's estimates, after the trees have been evaluated. */
function connectTarget(
  model: TimeModel,
  estimates: TargetEstimates,
  sums?: Float64Array,
): (columns: MetricColumns) => void {
  if (model.imported === undefined) return (columns) => estimateTarget(model, estimates, { columns, sums });
  const { physicsMs } = estimates;
  const evaluator = createImportedEvaluator(model.imported, physicsMs.length);
  // Written in place of physics: none was trained with these trees, and the prior's would only mislead.
  return (columns) => evaluator.evaluate(columns, physicsMs);
}

function believedForest(model: TimeModel) {
  return model.forestShare > 0 ? model.forest : undefined;
}

interface EvaluatedRows {
  readonly columns: MetricColumns;
  /** The sums of the trees; undefined if their share is 0. */
  readonly sums: Float64Array | undefined;
}

function estimateTarget(
  model: TimeModel,
  { physicsMs, treeLogs }: TargetEstimates,
  { columns, sums }: EvaluatedRows,
): void {
  const { count } = columns;
  evaluatePhysics(model.physics, columns, count, physicsMs);
  for (let i = 0; i < count; i++) physicsMs[i] = clampMs(physicsMs[i]!);
  if (sums === undefined) return;
  const { forestShare, treeBaseMs } = model;
  for (let i = 0; i < count; i++) treeLogs[i] = forestShare * sums[i]!;
  if (treeBaseMs === 0) return;
  for (let i = 0; i < count; i++) treeLogs[i]! += forestShare * Math.log(1 + treeBaseMs / physicsMs[i]!);
}

/** A model estimates this for one row. */
export interface Estimate {
  readonly physicsMs: number;
  readonly treeLog: number;
}

export function readEstimate({ physicsMs, treeLogs }: TargetEstimates, row: number): Estimate {
  return { physicsMs: physicsMs[row]!, treeLog: treeLogs[row]! };
}

/** The median of a row: physics corrected by the trees. */
export function readMedian({ physicsMs, treeLogs }: TargetEstimates, row: number): number {
  return clampMs(physicsMs[row]! * Math.exp(treeLogs[row]!));
}

/** Converts a median to another statistic by the calibration of the model. */
export function toStatistic(model: TimeModel, statistic: Statistic, medianMs: number): number {
  if (statistic === 'p50') return medianMs;
  return clampMs(
    medianMs * Math.exp(statisticOffset(model.calibration, { target: model.physics.target, statistic }, medianMs)),
  );
}
