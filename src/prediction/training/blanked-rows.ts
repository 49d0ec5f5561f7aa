/** Repeats some rows without the history of their server, so that trees answer well when reports are missing. */
import type { TrainingSet } from '../gbdt/training/boost.ts';
import { HISTORY_FEATURES } from '../model/features.ts';

/** The share of the rows that are learned twice. */
const BLANKED_SHARE = 1 / 4;
/** Missing values share the bin of the smallest values: a bin of their own did not improve predictions. */
const MISSING_BIN = 0;

/** Adds copies, without their history, of some rows that have one. */
export function addBlankedRows({ rows, target, weights }: TrainingSet): TrainingSet {
  const { binning, rowCount, bins } = rows;
  const hasHistory = (row: number) => HISTORY_FEATURES.some((f) => bins[f * rowCount + row] !== MISSING_BIN);
  // Not picked by multiples of the golden ratio, which pick the held-out rows.
  const copied = Array.from({ length: rowCount }, (_, row) => row).filter(
    (row) => (row * Math.SQRT2) % 1 < BLANKED_SHARE && hasHistory(row),
  );
  if (copied.length === 0) return { rows, target, ...(weights && { weights }) };
  const count = rowCount + copied.length;
  const extended = new Uint8Array(binning.edges.length * count).fill(MISSING_BIN);
  for (let feature = 0; feature < binning.edges.length; feature++) {
    extended.set(bins.subarray(feature * rowCount, (feature + 1) * rowCount), feature * count);
    if (HISTORY_FEATURES.includes(feature)) continue;
    for (const [i, row] of copied.entries()) extended[feature * count + rowCount + i] = bins[feature * rowCount + row]!;
  }
  const extend = (values: Float64Array) => {
    const longer = new Float64Array(count);
    longer.set(values);
    for (const [i, row] of copied.entries()) longer[rowCount + i] = values[row]!;
    return longer;
  };
  return {
    rows: { binning, rowCount: count, bins: extended },
    target: extend(target),
    ...(weights && { weights: extend(weights) }),
  };
}
