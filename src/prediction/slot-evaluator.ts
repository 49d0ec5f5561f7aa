/** Computes with the two target models of a slot: features once, bins once when the trees share them. */
import { type Statistic, statisticOffset } from './calibration.ts';
import { computeFeatures, FEATURE_COUNT } from './features.ts';
import { createEvaluator, type Evaluator } from './gbdt/evaluate.ts';
import { createImportedEvaluator } from './imported-trees.ts';
import { clampMs } from './milliseconds.ts';
import type { TargetModel } from './model.ts';
import type { MetricColumns } from './observation-table.ts';
import { evaluatePhysics } from './physics/physics.ts';

/** One target's answers for the rows of the last call, in milliseconds. */
export interface TargetAnswers {
  readonly model: TargetModel;
  /** By physics alone. */
  readonly physicsMs: Float64Array;
  /** What the trees multiply it with, as a logarithm, as far as they are believed. */
  readonly treeLogs: Float64Array;
}

export interface SlotEvaluator {
  readonly ttft: TargetAnswers;
  readonly tpot: TargetAnswers;
  /** Most rows of one call. */
  readonly capacity: number;
  /** Answers all rows; `columns.count` must not be above the capacity. */
  evaluate(columns: MetricColumns): void;
}

export function createSlotEvaluator(ttft: TargetModel, tpot: TargetModel, capacity: number): SlotEvaluator {
  const trees = connectTrees(ttft, tpot, capacity);
  const stride = trees.values.length / FEATURE_COUNT;
  const answers = { ttft: createAnswers(ttft, capacity), tpot: createAnswers(tpot, capacity) };
  const answerTtft = connectTarget(answers.ttft, capacity, trees.ttft);
  const answerTpot = connectTarget(answers.tpot, capacity, trees.tpot);
  return {
    ...answers,
    capacity,
    evaluate(columns) {
      computeFeatures(columns, trees.values, stride);
      trees.evaluate(columns.count);
      answerTtft(columns);
      answerTpot(columns);
    },
  };
}

function createAnswers(model: TargetModel, capacity: number): TargetAnswers {
  return { model, physicsMs: new Float64Array(capacity), treeLogs: new Float64Array(capacity) };
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

/** Fills a target's answers, after the trees have been evaluated. */
function connectTarget(
  answers: TargetAnswers,
  capacity: number,
  sums?: Float64Array,
): (columns: MetricColumns) => void {
  const { model, physicsMs } = answers;
  if (model.imported === undefined) return (columns) => answerTarget(answers, columns, sums);
  const evaluator = createImportedEvaluator(model.imported, capacity);
  // In the place of physics: none was learned beside it, and the prior's would only mislead.
  return (columns) => evaluator.evaluate(columns, physicsMs);
}

function believedForest(model: TargetModel) {
  return model.forestShare > 0 ? model.forest : undefined;
}

function answerTarget(
  { model, physicsMs, treeLogs }: TargetAnswers,
  columns: MetricColumns,
  sums?: Float64Array,
): void {
  const { count } = columns;
  evaluatePhysics(model.physics, columns, count, physicsMs);
  for (let i = 0; i < count; i++) physicsMs[i] = clampMs(physicsMs[i]!);
  if (sums === undefined) return;
  const { forestShare } = model;
  for (let i = 0; i < count; i++) treeLogs[i] = forestShare * sums[i]!;
}

/** What a model says of one row. */
export interface Said {
  readonly physicsMs: number;
  readonly treeLog: number;
}

export function readSaid({ physicsMs, treeLogs }: TargetAnswers, row: number): Said {
  return { physicsMs: physicsMs[row]!, treeLog: treeLogs[row]! };
}

/** The median of a row: physics corrected by the trees. */
export function readMedian({ physicsMs, treeLogs }: TargetAnswers, row: number): number {
  return clampMs(physicsMs[row]! * Math.exp(treeLogs[row]!));
}

/** A median as the statistic that is asked for. */
export function toStatistic(model: TargetModel, statistic: Statistic, medianMs: number): number {
  if (statistic === 'p50') return medianMs;
  return clampMs(medianMs * Math.exp(statisticOffset(model.calibration, statistic, medianMs)));
}
