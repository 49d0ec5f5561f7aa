/** Sums quantised gradients and weights by bin, and subtracts a sibling's histogram. */
import { type Binning, countBins } from '../binning.ts';

/**
 * A histogram has the sums of quantised gradients and weights of each bin. All entries are whole numbers that a double holds
 * exactly, so a histogram does not depend on the order of its rows, and a sibling is parent − child without error.
 */

/** Where each feature's bins lie in a histogram; features with one bin only have none, since they cannot split. */
export interface HistogramLayout {
  readonly offsets: Uint32Array;
  readonly binCounts: Uint32Array;
  readonly totalBins: number;
}

/** The rows of one leaf: bin columns, and a gradient and a weight for each row. */
export interface LeafRows {
  readonly bins: Uint8Array;
  readonly rowCount: number;
  /** Row numbers in `bins`; only those from `start` to `end` (exclusive) belong to this leaf. Each adds its gradient and its weight. */
  readonly order: Uint32Array;
  readonly gradients: Int32Array;
  readonly weights: Int32Array;
  readonly start: number;
  readonly end: number;
}

export function createLayout(binning: Binning): HistogramLayout {
  const binCounts = Uint32Array.from(binning.edges, (_, feature) => usableBins(countBins(binning, feature)));
  const offsets = new Uint32Array(binCounts.length);
  for (let feature = 1; feature < offsets.length; feature++) {
    offsets[feature] = offsets[feature - 1]! + binCounts[feature - 1]!;
  }
  return { offsets, binCounts, totalBins: binCounts.reduce((sum, count) => sum + count, 0) };
}

function usableBins(count: number): number {
  return count > 1 ? count : 0;
}

/** Fills `histogram` (pairs of gradient and weight sums) with the sums of the leaf's rows. */
export function buildHistogram(layout: HistogramLayout, leaf: LeafRows, histogram: Float64Array): void {
  histogram.fill(0);
  for (let feature = 0; feature < layout.binCounts.length; feature++) {
    if (layout.binCounts[feature] === 0) continue;
    addColumn(leaf, feature * leaf.rowCount, 2 * layout.offsets[feature]!, histogram);
  }
}

function addColumn(leaf: LeafRows, column: number, offset: number, histogram: Float64Array): void {
  const { bins, order, gradients, weights, end } = leaf;
  for (let i = leaf.start; i < end; i++) {
    const row = order[i]!;
    const entry = offset + 2 * bins[column + row]!;
    histogram[entry]! += gradients[row]!;
    histogram[entry + 1]! += weights[row]!;
  }
}

/** sibling = parent − child. */
export function subtractHistogram(parent: Float64Array, child: Float64Array, sibling: Float64Array): void {
  for (let i = 0; i < parent.length; i++) sibling[i] = parent[i]! - child[i]!;
}
