/** Grows symmetric trees level by level on binned rows, in plain TypeScript. */
import type { BinnedRows } from '../binning.ts';
import type { TreeLevels } from '../tree.ts';
import { buildHistogram, createLayout, type HistogramLayout, subtractHistogram } from './histogram.ts';
import { findBestSplit, type SplitRule } from './split.ts';

/**
 * Grows one symmetric tree after the other on the same rows. The caller fills `gradients` and `weights`, calls
 * `grow`, and reads `leafOfRow`. Two implementations give the same trees: this one, and the WebAssembly kernel.
 */
export interface TreeGrower {
  /** Quantised gradients, one a row. */
  readonly gradients: Int32Array;
  /** Quantised weights, one a row; a row of weight 0 and gradient 0 does not take part. */
  readonly weights: Int32Array;
  /** The leaf of every row in the last tree, also of those that did not take part. */
  readonly leafOfRow: Uint8Array;
  grow(depth: number, rule: SplitRule): TreeLevels;
}

export function createPlainGrower(rows: BinnedRows): TreeGrower {
  const { rowCount } = rows;
  const gradients = new Int32Array(rowCount);
  const weights = new Int32Array(rowCount);
  const leafOfRow = new Uint8Array(rowCount);
  const layout = createLayout(rows.binning);
  return {
    gradients,
    weights,
    leafOfRow,
    grow(depth, rule) {
      const levels = growLevels({ rows, layout, gradients, weights }, depth, rule);
      assignLeaves(rows, levels, leafOfRow);
      return levels;
    },
  };
}

interface GrowInput {
  readonly rows: BinnedRows;
  readonly layout: HistogramLayout;
  readonly gradients: Int32Array;
  readonly weights: Int32Array;
}

/** Rows grouped by leaf: those of leaf `l` are `order[starts[l] … starts[l + 1])`. */
interface Partition {
  readonly order: Uint32Array;
  readonly starts: readonly number[];
}

function growLevels(input: GrowInput, depth: number, rule: SplitRule): TreeLevels {
  const features: number[] = [];
  const thresholds: number[] = [];
  let partition = startPartition(input.weights);
  let histograms = buildRoot(input, partition);
  for (let level = 0; level < depth; level++) {
    const split = findBestSplit(input.layout, { histograms, leafCount: 1 << level }, rule);
    if (split === undefined) break;
    features.push(split.feature);
    thresholds.push(split.threshold);
    if (level + 1 === depth) break;
    partition = splitPartition(input.rows, partition, split);
    histograms = buildChildren(input, partition, histograms);
  }
  return { features, thresholds };
}

function startPartition(weights: Int32Array): Partition {
  const order = new Uint32Array(weights.length);
  let count = 0;
  for (let row = 0; row < weights.length; row++) if (weights[row]! > 0) order[count++] = row;
  return { order: order.subarray(0, count), starts: [0, count] };
}

function splitPartition(
  rows: BinnedRows,
  partition: Partition,
  split: { readonly feature: number; readonly threshold: number },
): Partition {
  const order = new Uint32Array(partition.order.length);
  const starts: number[] = [0];
  const column = split.feature * rows.rowCount;
  for (let leaf = 0; leaf + 1 < partition.starts.length; leaf++) {
    let left = partition.starts[leaf]!;
    let right = partition.starts[leaf + 1]!;
    for (let i = left, end = right; i < end; i++) {
      const row = partition.order[i]!;
      // The right side is written backwards from the end: sums do not depend on the order of rows.
      if (rows.bins[column + row]! > split.threshold) order[--right] = row;
      else order[left++] = row;
    }
    starts.push(left, partition.starts[leaf + 1]!);
  }
  return { order, starts };
}

function buildRoot(input: GrowInput, partition: Partition): Float64Array {
  const histogram = new Float64Array(2 * input.layout.totalBins);
  buildLeaf(input, partition, 0, histogram);
  return histogram;
}

function buildLeaf(input: GrowInput, partition: Partition, leaf: number, histogram: Float64Array): void {
  const { bins, rowCount } = input.rows;
  const { gradients, weights } = input;
  const [start, end] = [partition.starts[leaf]!, partition.starts[leaf + 1]!];
  buildHistogram(input.layout, { bins, rowCount, order: partition.order, gradients, weights, start, end }, histogram);
}

/** Sums only the smaller child of each pair; its sibling is the parent minus this child. */
function buildChildren(input: GrowInput, partition: Partition, parents: Float64Array): Float64Array {
  const size = 2 * input.layout.totalBins;
  const children = new Float64Array(2 * parents.length);
  for (let pair = 0; 2 * pair + 2 < partition.starts.length; pair++) {
    const middle = partition.starts[2 * pair + 1]!;
    const isLeftSmaller = middle - partition.starts[2 * pair]! <= partition.starts[2 * pair + 2]! - middle;
    const smaller = 2 * pair + (isLeftSmaller ? 0 : 1);
    const larger = smaller ^ 1;
    const child = children.subarray(smaller * size, (smaller + 1) * size);
    buildLeaf(input, partition, smaller, child);
    const parent = parents.subarray(pair * size, (pair + 1) * size);
    subtractHistogram(parent, child, children.subarray(larger * size, (larger + 1) * size));
  }
  return children;
}

/** The leaf of every row: the first level gives the highest digit. */
export function assignLeaves(rows: BinnedRows, levels: TreeLevels, leafOfRow: Uint8Array): void {
  leafOfRow.fill(0);
  levels.features.forEach((feature, level) => {
    const threshold = levels.thresholds[level]!;
    const column = feature * rows.rowCount;
    for (let row = 0; row < rows.rowCount; row++) {
      leafOfRow[row] = 2 * leafOfRow[row]! + ((threshold - rows.bins[column + row]!) >>> 31);
    }
  });
}
