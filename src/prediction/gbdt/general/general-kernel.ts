/** Evaluates trees of any shape fast, by comparing the ranks of values as whole numbers. */
import { evaluateGeneralForest, type GeneralForest, type GeneralRows, MISSING_ZERO } from './general-tree.ts';

/**
 * Trees of any shape, in a layout for fast evaluation. Once for each call, values become their ranks among the cut points of
 * their feature, so that a step compares whole numbers and needs no branch. Siblings are adjacent, leaves point to themselves,
 * and four rows walk a tree at a time. The results equal those of `evaluateGeneralForest`, to the last bit.
 */
export interface GeneralKernel {
  /** Fills the first `rows.count` entries of `outputs`. */
  evaluate(rows: GeneralRows, outputs: Float64Array): void;
}

/** Every call must have this `stride`. */
export function createGeneralKernel(forest: GeneralForest, stride: number): GeneralKernel {
  const plain = {
    evaluate: (rows: GeneralRows, outputs: Float64Array) => evaluateGeneralForest(forest, rows, outputs),
  };
  // If 0 counts as missing, the path of a row does not follow the order of values.
  if (forest.missing.some((missing) => (missing & 3) === MISSING_ZERO)) return plain;
  const features = [...new Set(forest.features)].filter((feature) => feature >= 0);
  const cuts = new Map(features.map((feature) => [feature, listCuts(forest, feature)]));
  const trees = layOut(forest, cuts, stride);
  const ranks = new Int32Array((Math.max(0, ...features) + 1) * stride);
  return {
    evaluate(rows, outputs) {
      // A value may be NaN, for a load beyond all numbers. It has no rank: each node decides which way it goes.
      for (const [feature, edges] of cuts)
        if (!rankValues(edges, feature, rows, ranks)) return plain.evaluate(rows, outputs);
      outputs.fill(forest.base, 0, rows.count);
      for (let tree = 0; tree < forest.roots.length; tree++) addTree(trees, tree, ranks, rows.count, outputs);
      if (forest.link === 'exp') for (let row = 0; row < rows.count; row++) outputs[row] = Math.exp(outputs[row]!);
    },
  };
}

/** The distinct thresholds of a feature, rising. */
function listCuts({ features, thresholds }: GeneralForest, feature: number): Float64Array {
  return Float64Array.from(new Set(thresholds.filter((_, node) => features[node] === feature))).sort();
}

/** Fills the ranks of a feature: how many cuts are below each value. Returns false if a value is NaN. */
function rankValues(cuts: Float64Array, feature: number, { values, stride, count }: GeneralRows, ranks: Int32Array) {
  const start = feature * stride;
  for (let at = start; at < start + count; at++) {
    const value = values[at]!;
    if (Number.isNaN(value)) return false;
    ranks[at] = countBelow(cuts, value);
  }
  return true;
}

function countBelow(cuts: Float64Array, value: number): number {
  let low = 0;
  let high = cuts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (cuts[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface Layout {
  /** The roots by tree. */
  readonly roots: Int32Array;
  readonly depths: Int32Array;
  /** Where the ranks of each node's feature begin, the rank of its threshold, and its left child; the right child is the next node. */
  readonly columns: Int32Array;
  readonly cutRanks: Int32Array;
  readonly left: Int32Array;
  readonly leaves: Float64Array;
}

/** No rank is above it: the row stays. */
const ALWAYS_LEFT = 0x7fff_ffff;

function layOut(forest: GeneralForest, cuts: ReadonlyMap<number, Float64Array>, stride: number): Layout {
  const count = forest.features.length;
  const layout: Layout = {
    roots: new Int32Array(forest.roots.length),
    depths: new Int32Array(forest.roots.length),
    columns: new Int32Array(count),
    cutRanks: new Int32Array(count).fill(ALWAYS_LEFT),
    left: new Int32Array(count),
    leaves: new Float64Array(count),
  };
  let free = 0;
  for (let tree = 0; tree < forest.roots.length; tree++) {
    layout.roots[tree] = free++;
    let level = [[forest.roots[tree]!, layout.roots[tree]!] as const];
    for (let depth = 0; level.length > 0; depth++) {
      layout.depths[tree] = depth;
      const next: (readonly [number, number])[] = [];
      for (const [node, place] of level) {
        const feature = forest.features[node]!;
        layout.left[place] = place;
        if (feature < 0) {
          layout.leaves[place] = forest.thresholds[node]!;
          continue;
        }
        layout.columns[place] = feature * stride;
        layout.cutRanks[place] = countBelow(cuts.get(feature)!, forest.thresholds[node]!);
        layout.left[place] = free;
        next.push([forest.left[node]!, free], [forest.right[node]!, free + 1]);
        free += 2;
      }
      level = next;
    }
  }
  return layout;
}

function addTree(layout: Layout, tree: number, ranks: Int32Array, count: number, outputs: Float64Array): void {
  const { columns, cutRanks, left, leaves } = layout;
  const root = layout.roots[tree]!;
  const depth = layout.depths[tree]!;
  let row = 0;
  // Four rows at a time: while one waits for memory, the others go on.
  for (; row + 3 < count; row += 4) {
    let a = root;
    let b = root;
    let c = root;
    let d = root;
    for (let level = 0; level < depth; level++) {
      // The sign bit is 1 where the rank is above that of the cut: one node further, to the right.
      a = left[a]! + ((cutRanks[a]! - ranks[columns[a]! + row]!) >>> 31);
      b = left[b]! + ((cutRanks[b]! - ranks[columns[b]! + row + 1]!) >>> 31);
      c = left[c]! + ((cutRanks[c]! - ranks[columns[c]! + row + 2]!) >>> 31);
      d = left[d]! + ((cutRanks[d]! - ranks[columns[d]! + row + 3]!) >>> 31);
    }
    outputs[row]! += leaves[a]!;
    outputs[row + 1]! += leaves[b]!;
    outputs[row + 2]! += leaves[c]!;
    outputs[row + 3]! += leaves[d]!;
  }
  for (; row < count; row++) {
    let node = root;
    for (let level = 0; level < depth; level++)
      node = left[node]! + ((cutRanks[node]! - ranks[columns[node]! + row]!) >>> 31);
    outputs[row]! += leaves[node]!;
  }
}
