/** Rows of one target with their features: what physics and trees are fitted to. */
import {
  computeFeatures,
  FEATURE_COUNT,
  type FeatureMatrix,
  HISTORY_FEATURES,
  MISSING_HISTORY,
  OFFSET_FEATURES,
} from '../model/features.ts';
import type { SlotOffsets } from '../model/model.ts';
import { readRowOffsets } from '../model/server-offsets.ts';
import { type ObservationTable, observedTimes, TARGETS, type Target } from '../schema/observation-table.ts';

/** Rows of one target, ready to learn from. */
export interface Samples {
  readonly table: ObservationTable;
  readonly slotOffsets: SlotOffsets;
  readonly features: FeatureMatrix;
  readonly observed: Float64Array;
}

export function computeSamples(target: Target, table: ObservationTable, slotOffsets: SlotOffsets): Samples {
  const observed = observedTimes(table, target).slice(0, table.count);
  return { table, slotOffsets, features: computeMatrix(table, slotOffsets), observed };
}

export function computeMatrix(table: ObservationTable, slotOffsets?: SlotOffsets): FeatureMatrix {
  const count = table.count;
  const values = new Float32Array(FEATURE_COUNT * count);
  computeFeatures(table, values, count);
  if (slotOffsets !== undefined)
    for (const target of TARGETS)
      values.set(readRowOffsets(slotOffsets[target], table), OFFSET_FEATURES[target] * count);
  return { values, stride: count, count };
}

/** Share of the rows that forget what was known of their servers, so that the trees also learn to answer without. */
const BLANKED_SHARE = 1 / 3;

/** Not by multiples of the golden ratio, which hold rows out. */
export function blankHistory(samples: Samples): Samples {
  const { values, stride, count } = samples.features;
  const blanked = values.slice();
  for (let row = 0; row < count; row++)
    if ((row * Math.SQRT2) % 1 < BLANKED_SHARE)
      for (const feature of HISTORY_FEATURES) blanked[feature * stride + row] = MISSING_HISTORY;
  return { ...samples, features: { ...samples.features, values: blanked } };
}

export function toColumns({ values, stride, count }: FeatureMatrix): Float32Array[] {
  return Array.from({ length: FEATURE_COUNT }, (_, f) => values.subarray(f * stride, f * stride + count));
}
