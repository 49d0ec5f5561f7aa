/** Computes with the two target models of a slot: features once, bins once when the trees share them. */

import { createEvaluator, type Evaluator } from '../gbdt/evaluate.ts';
import { evaluatePhysics } from '../physics/physics.ts';
import { clampMs } from '../schema/milliseconds.ts';
import { type MetricColumns, TARGETS } from '../schema/observation-table.ts';
import { type Statistic, statisticOffset } from './calibration.ts';
import { computeFeatures, FEATURE_COUNT, OFFSET_FEATURES } from './features.ts';
import { createImportedEvaluator } from './imported-trees.ts';
import type { SlotOffsets, TargetModel } from './model.ts';
import { NO_OFFSETS, type ServerOffsets } from './server-offsets.ts';

/** One target's answers for the rows of the last call, in milliseconds. */
export interface TargetAnswers {
  readonly model: TargetModel;
  /** By physics alone. */
  readonly physicsMs: Float64Array;
  /** What the trees multiply it with, as a logarithm, as far as they are believed. */
  readonly treeLogs: Float64Array;
}

/** Fills what these levels say of the servers of the first `count` rows. */
export type TellLevels = (levels: ServerOffsets, into: Float32Array, count: number) => void;

export interface SlotEvaluator {
  readonly ttft: TargetAnswers;
  readonly tpot: TargetAnswers;
  /** Most rows of one call. */
  readonly capacity: number;
  /** Answers all rows; `columns.count` must not be above the capacity. */
  evaluate(columns: MetricColumns, tell: TellLevels): void;
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
    evaluate(columns, tell) {
      computeFeatures(columns, trees.values, stride);
      trees.evaluate(columns.count, tell);
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
  evaluate(count: number, tell: TellLevels): void;
}

const LEVELS_AT = Math.min(...Object.values(OFFSET_FEATURES));
const ALL_ALIKE: SlotOffsets = { ttft: NO_OFFSETS, tpot: NO_OFFSETS };

function connectTrees(ttft: TargetModel, tpot: TargetModel, capacity: number): Trees {
  const first = believedForest(ttft);
  const second = believedForest(tpot);
  if (first !== undefined && second?.binning === first.binning) {
    const both = createEvaluator([first, second], { capacity });
    const tellBoth = connectLevels(ttft, both);
    return {
      values: both.values,
      ttft: both.outputs[0],
      tpot: both.outputs[1],
      evaluate(count, tell) {
        tellBoth(count, tell);
        both.evaluate(count);
      },
    };
  }
  const own = first && createEvaluator([first], { capacity });
  const other = second && createEvaluator([second], { capacity });
  const tellOwn = own && connectLevels(ttft, own);
  const tellOther = other && connectLevels(tpot, other);
  const stride = (own ?? other)?.capacity ?? capacity;
  const values = own?.values ?? other?.values ?? new Float32Array(FEATURE_COUNT * capacity);
  return {
    values,
    ttft: own?.outputs[0],
    tpot: other?.outputs[0],
    evaluate(count, tell) {
      // All but the levels, which each has of its own.
      if (other !== undefined && other.values !== values) other.values.set(values.subarray(0, LEVELS_AT * stride));
      tellOwn?.(count, tell);
      own?.evaluate(count);
      tellOther?.(count, tell);
      other?.evaluate(count);
    },
  };
}

/** Without levels, the trees have learned that all servers are at 0, and so they stay. */
function connectLevels({ slotOffsets = ALL_ALIKE }: TargetModel, { values, capacity }: Evaluator) {
  const columns = TARGETS.filter((target) => slotOffsets[target].servers.size > 0).map((target) => {
    const start = OFFSET_FEATURES[target] * capacity;
    return { levels: slotOffsets[target], into: values.subarray(start, start + capacity) };
  });
  return (count: number, tell: TellLevels) => {
    for (const { levels, into } of columns) tell(levels, into, count);
  };
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
  const { forestShare, treeBaseMs } = model;
  for (let i = 0; i < count; i++) treeLogs[i] = forestShare * sums[i]!;
  if (treeBaseMs === 0) return;
  for (let i = 0; i < count; i++) treeLogs[i]! += forestShare * Math.log(1 + treeBaseMs / physicsMs[i]!);
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
  return clampMs(
    medianMs * Math.exp(statisticOffset(model.calibration, { target: model.physics.target, statistic }, medianMs)),
  );
}
