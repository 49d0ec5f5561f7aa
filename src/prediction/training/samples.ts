/** Computes the features of the rows that physics and trees are fitted to. */
import { computeFeatures, FEATURE_COUNT, type FeatureMatrix, OFFSET_FEATURES } from '../model/features.ts';
import type { SlotOffsets } from '../model/model.ts';
import { readRowOffsets } from '../model/server-offsets.ts';
import {
  type ObservationTable,
  observedTimes,
  PREDICTION_TARGETS,
  type PredictionTarget,
} from '../schema/observation-table.ts';

/** Rows of one target, ready to learn from. */
export interface Samples {
  readonly table: ObservationTable;
  readonly slotOffsets: SlotOffsets;
  readonly features: FeatureMatrix;
  readonly observed: Float64Array;
}

export function computeSamples(target: PredictionTarget, table: ObservationTable, slotOffsets: SlotOffsets): Samples {
  const observed = observedTimes(table, target).slice(0, table.count);
  return { table, slotOffsets, features: computeMatrix(table, slotOffsets), observed };
}

export function computeMatrix(table: ObservationTable, slotOffsets?: SlotOffsets): FeatureMatrix {
  const count = table.count;
  const values = new Float32Array(FEATURE_COUNT * count);
  computeFeatures(table, values, count);
  if (slotOffsets !== undefined)
    for (const target of PREDICTION_TARGETS)
      values.set(readRowOffsets(slotOffsets[target], table), OFFSET_FEATURES[target] * count);
  return { values, stride: count, count };
}

export function toColumns({ values, stride, count }: FeatureMatrix): Float32Array[] {
  return Array.from({ length: FEATURE_COUNT }, (_, f) => values.subarray(f * stride, f * stride + count));
}
