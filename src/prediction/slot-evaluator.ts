/** Computes with the two target models of a slot: features once, bins once when the trees share them. */
import { type Statistic, statisticOffset } from './calibration.ts';
import { computeFeatures, FEATURE_COUNT, type FeatureMatrix } from './features.ts';
import { createEvaluator, type Evaluator } from './gbdt/evaluate.ts';
import { clampMs } from './milliseconds.ts';
import type { TargetModel } from './model.ts';
import type { MetricColumns } from './observation-table.ts';
import { evaluatePhysics } from './physics/physics.ts';

export interface SlotEvaluator {
  readonly ttft: TargetModel;
  readonly tpot: TargetModel;
  /** Most rows of one call. */
  readonly capacity: number;
  /** The features of the last call. */
  readonly features: FeatureMatrix;
  /** Medians of the last call. */
  readonly ttftMs: Float64Array;
  readonly tpotMs: Float64Array;
  /** Fills the medians of all rows; `columns.count` must not be above the capacity. */
  evaluate(columns: MetricColumns): void;
}

export function createSlotEvaluator(ttft: TargetModel, tpot: TargetModel, capacity: number): SlotEvaluator {
  const trees = connectTrees(ttft, tpot, capacity);
  const stride = trees.values.length / FEATURE_COUNT;
  const features = { values: trees.values, stride, count: 0 };
  const ttftMs = new Float64Array(capacity);
  const tpotMs = new Float64Array(capacity);
  return {
    ttft,
    tpot,
    capacity,
    features,
    ttftMs,
    tpotMs,
    evaluate(columns) {
      features.count = columns.count;
      computeFeatures(columns, features.values, stride);
      trees.evaluate(columns.count);
      evaluatePhysics(ttft.physics, columns, columns.count, ttftMs);
      evaluatePhysics(tpot.physics, columns, columns.count, tpotMs);
      correct(ttftMs, trees.ttft, ttft.forestShare, columns.count);
      correct(tpotMs, trees.tpot, tpot.forestShare, columns.count);
    },
  };
}

interface Trees {
  readonly values: Float32Array;
  readonly ttft: Float64Array | undefined;
  readonly tpot: Float64Array | undefined;
  evaluate(count: number): void;
}

function connectTrees(ttft: TargetModel, tpot: TargetModel, capacity: number): Trees {
  const first = believedForest(ttft);
  const second = believedForest(tpot);
  if (first !== undefined && second?.binning === first.binning) {
    const both = createEvaluator([first, second], { capacity });
    return { values: both.values, ttft: both.outputs[0], tpot: both.outputs[1], evaluate: (n) => both.evaluate(n) };
  }
  const own = first && createEvaluator([first], { capacity });
  const other = second && createEvaluator([second], { capacity });
  const values = own?.values ?? other?.values ?? new Float32Array(FEATURE_COUNT * capacity);
  return {
    values,
    ttft: own?.outputs[0],
    tpot: other?.outputs[0],
    evaluate(count) {
      own?.evaluate(count);
      if (other !== undefined) evaluateCopy(other, values, count);
    },
  };
}

function evaluateCopy(evaluator: Evaluator, values: Float32Array, count: number): void {
  if (evaluator.values !== values) evaluator.values.set(values);
  evaluator.evaluate(count);
}

function believedForest(model: TargetModel) {
  return model.forestShare > 0 ? model.forest : undefined;
}

function correct(milliseconds: Float64Array, sums: Float64Array | undefined, share: number, count: number): void {
  for (let i = 0; i < count; i++) {
    const factor = sums === undefined ? 1 : Math.exp(share * sums[i]!);
    milliseconds[i] = clampMs(milliseconds[i]! * factor);
  }
}

/** A median as the statistic that is asked for. */
export function toStatistic(model: TargetModel, statistic: Statistic, medianMs: number): number {
  if (statistic === 'p50') return medianMs;
  return clampMs(medianMs * Math.exp(statisticOffset(model.calibration, statistic, medianMs)));
}
