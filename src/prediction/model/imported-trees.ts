/**
 * Evaluates trees of another library: computes their features from an input, and converts their output to milliseconds. Values
 * are compared in the precision of that library, so that results equal its own to the last digits.
 */

import { createGeneralKernel } from '../gbdt/general/general-kernel.ts';
import type { GeneralForest } from '../gbdt/general/general-tree.ts';
import { clampMs } from '../schema/milliseconds.ts';
import type { MetricColumns } from '../schema/observation-table.ts';
import { computeFeatures, FEATURE_COUNT, FEATURE_NAMES } from './features.ts';

/** The function of the time (in `TimeUnit`) that the trees were trained to predict. */
export const TRANSFORMS = ['identity', 'log', 'log1p'] as const;
export type Transform = (typeof TRANSFORMS)[number];

const MS_OF_UNIT = { ms: 1, s: 1000 } as const;
export type TimeUnit = keyof typeof MS_OF_UNIT;
export const TIME_UNITS: readonly TimeUnit[] = ['ms', 's'];

export interface FeatureSource {
  /** Its name in the imported file. */
  readonly name: string;
  /** A name of INPUT_FEATURE_NAMES, or a constant value. */
  readonly from: string | number;
}

export interface ImportedTrees {
  readonly library: string;
  readonly forest: GeneralForest;
  /** One for each feature of the forest, in its order. */
  readonly sources: readonly FeatureSource[];
  readonly transform: Transform;
  readonly unit: TimeUnit;
}

export interface ImportedEvaluator {
  /** Fills the first `columns.count` entries of `outputs`, in milliseconds. */
  evaluate(columns: MetricColumns, outputs: Float64Array): void;
}

export function createImportedEvaluator(imported: ImportedTrees, capacity: number): ImportedEvaluator {
  const columnCount = FEATURE_COUNT + imported.sources.length;
  const values = createValues(imported.forest, columnCount * capacity);
  imported.sources.forEach(({ from }, f) => {
    const start = (FEATURE_COUNT + f) * capacity;
    if (typeof from === 'number') values.fill(from, start, start + capacity);
  });
  const forest = {
    ...imported.forest,
    features: imported.forest.features.map((feature) => (feature < 0 ? feature : placeSource(imported, feature))),
  };
  const kernel = createGeneralKernel(forest, capacity);
  return {
    evaluate(columns, outputs) {
      computeFeatures(columns, values, capacity);
      kernel.evaluate({ values, stride: capacity, count: columns.count }, outputs);
      for (let i = 0; i < columns.count; i++) outputs[i] = toMilliseconds(imported, outputs[i]!);
    },
  };
}

function createValues({ precision }: GeneralForest, length: number): Float32Array | Float64Array {
  return precision === 'single' ? new Float32Array(length) : new Float64Array(length);
}

/** The column of a feature: one of ours, or a constant after them. */
function placeSource({ sources }: ImportedTrees, feature: number): number {
  const { from } = sources[feature]!;
  return typeof from === 'number' ? FEATURE_COUNT + feature : FEATURE_NAMES.indexOf(from as never);
}

/** Converts the output of the trees, after their link function, to milliseconds. */
function toMilliseconds({ transform, unit }: ImportedTrees, said: number): number {
  const time = transform === 'log' ? Math.exp(said) : transform === 'log1p' ? Math.expm1(said) : said;
  return clampMs(time * MS_OF_UNIT[unit]);
}

/** The features of the one row of `columns` in the order of the trees. */
export function readImportedRow(
  { forest, sources }: ImportedTrees,
  columns: MetricColumns,
): Float32Array | Float64Array {
  const ours = createValues(forest, FEATURE_COUNT);
  computeFeatures(columns, ours, 1);
  const row = createValues(forest, sources.length);
  sources.forEach(({ from }, f) => {
    row[f] = typeof from === 'number' ? from : ours[FEATURE_NAMES.indexOf(from as never)]!;
  });
  return row;
}

/** Whether the trees add up times (or else multiply factors), and how many milliseconds a unit has. */
export function describeOutput({ forest, transform, unit }: ImportedTrees) {
  return { isAdded: forest.link === 'identity' && transform === 'identity', unitMs: MS_OF_UNIT[unit] };
}
