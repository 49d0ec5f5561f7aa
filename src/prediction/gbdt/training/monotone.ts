/** Projects leaf values onto monotone constraints. */
import type { TreeLevels } from '../tree.ts';

/** Leaf values, and how much each counts. */
interface WeightedLeaves {
  readonly values: Float64Array;
  readonly weights: Float64Array;
}

/**
 * Moves leaf values as little as possible (weighted squares) until they rise, or fall, along the constrained features: isotonic
 * regression on the cube whose corners are the numbers of the leaves in binary (`../tree.ts`), by generalised
 * pool-adjacent-violators (Burdakov, Sysoev, Grimvall & Hussian 2006). Its solution depends on the direction in which it visits
 * leaves, so the solutions of both directions are averaged: the mean of two rising solutions rises. Changes `values` in place.
 * `monotone` has 1 for a feature along which values rise, -1 where they fall, and 0 for a free one.
 */
export function projectMonotone(levels: TreeLevels, monotone: Int8Array, { values, weights }: WeightedLeaves): void {
  const lower = listLowerLeaves(levels, monotone);
  if (lower.every((below, leaf) => below.every((other) => values[other]! <= values[leaf]!))) return;
  const order = sortLeaves(levels, monotone);
  const rising = poolViolators({ order, below: lower }, { values, weights });
  const upper = reverse(lower);
  const negated = values.map((value) => -value);
  const falling = poolViolators({ order: order.toReversed(), below: upper }, { values: negated, weights });
  for (const leaf of order) values[leaf] = (rising[leaf]! - falling[leaf]!) / 2;
}

/** Lists, for each leaf, those that differ from it in one constrained digit only and must not have a higher value. */
function listLowerLeaves(levels: TreeLevels, monotone: Int8Array): number[][] {
  const depth = levels.features.length;
  const reachable = Array.from({ length: 1 << depth }, (_, leaf) => isReachable(levels, leaf));
  const lower: number[][] = reachable.map(() => []);
  levels.features.forEach((feature, level) => {
    const sign = monotone[feature]!;
    if (sign === 0) return;
    const digit = 1 << (depth - 1 - level);
    for (let leaf = 0; leaf < lower.length; leaf++) {
      const isUpper = ((leaf & digit) !== 0) === sign > 0;
      if (isUpper && reachable[leaf]! && reachable[leaf ^ digit]!) lower[leaf]!.push(leaf ^ digit);
    }
  });
  return lower;
}

/** Orders the leaves, each after those that must not have a higher value. */
function sortLeaves({ features }: TreeLevels, monotone: Int8Array): number[] {
  const depth = features.length;
  let falling = 0;
  features.forEach((feature, level) => {
    if (monotone[feature]! < 0) falling |= 1 << (depth - 1 - level);
  });
  return Array.from({ length: 1 << depth }, (_, position) => position ^ falling);
}

function reverse(below: readonly (readonly number[])[]): number[][] {
  const above: number[][] = below.map(() => []);
  below.forEach((of, leaf) => {
    for (const other of of) above[other]!.push(leaf);
  });
  return above;
}

interface LeafOrder {
  readonly order: readonly number[];
  readonly below: readonly (readonly number[])[];
}

/** The weight of a leaf without rows: it has nearly no influence, but its value must be between those of its neighbours. */
const MIN_WEIGHT = 1e-6;

/** Returns values of the leaves, none of which is below that of a leaf in its `below` list. */
function poolViolators({ order, below }: LeafOrder, { values, weights }: WeightedLeaves): Float64Array {
  /** Leaves are pooled into blocks; a block is named after the leaf that pooled it. */
  const blockOf = Int32Array.from(below, (_, leaf) => leaf);
  const means = values.slice(0, below.length);
  const totals = Float64Array.from(below, (_, leaf) => Math.max(weights[leaf]!, MIN_WEIGHT));
  const neighbours = below.map((of) => [...of]);
  for (const leaf of order)
    for (let other = findHighest(leaf); other !== leaf; other = findHighest(leaf)) {
      const total = totals[leaf]! + totals[other]!;
      means[leaf] = (means[leaf]! * totals[leaf]! + means[other]! * totals[other]!) / total;
      totals[leaf] = total;
      neighbours[leaf]!.push(...neighbours[other]!);
      for (let i = 0; i < blockOf.length; i++) if (blockOf[i] === other) blockOf[i] = leaf;
    }

  /** The block below with the highest mean above that of this block; this block itself without such a block. */
  function findHighest(leaf: number): number {
    let highest = leaf;
    for (const neighbour of neighbours[leaf]!) {
      const block = blockOf[neighbour]!;
      if (means[block]! > means[highest]!) highest = block;
    }
    return highest;
  }

  return means.map((_, leaf) => means[blockOf[leaf]!]!);
}

/** Whether a row can be in the leaf: no row is above the higher of two thresholds of a feature and not above the lower. */
export function isReachable(levels: TreeLevels, leaf: number): boolean {
  const depth = levels.features.length;
  for (let a = 0; a < depth; a++) {
    for (let b = 0; b < depth; b++) {
      if (levels.features[a] !== levels.features[b] || levels.thresholds[a]! > levels.thresholds[b]!) continue;
      const aboveLower = (leaf >> (depth - 1 - a)) & 1;
      const aboveHigher = (leaf >> (depth - 1 - b)) & 1;
      if (aboveHigher > aboveLower) return false;
    }
  }
  return true;
}
