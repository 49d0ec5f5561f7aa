import type { TreeLevels } from './tree.ts';

/**
 * The leaf values nearest to the given ones (weighted least squares) that rise, or fall, along the constrained
 * features: isotonic regression on the cube of the tree's digits, by Dykstra's alternating projections (1983) and a
 * last sweep that makes the order exact. Changes `values` in place.
 */
export function projectMonotone(
  levels: TreeLevels,
  monotone: Int8Array,
  leaves: { readonly values: Float64Array; readonly weights: Float64Array },
): void {
  const depth = levels.features.length;
  const pairs = listConstrainedPairs(levels, monotone);
  if (pairs.every((of) => of.every(([low, high]) => leaves.values[low]! <= leaves.values[high]!))) return;
  const weights = leaves.weights.map((weight) => Math.max(weight, 1e-6));
  alternateProjections(pairs, leaves.values, weights);
  sweep(levels, monotone, leaves.values, depth);
}

type Pair = readonly [low: number, high: number];

const ROUNDS = 50;

/** For each constrained level, the pairs of reachable leaves that differ in its digit only, the smaller value first. */
function listConstrainedPairs(levels: TreeLevels, monotone: Int8Array): Pair[][] {
  const depth = levels.features.length;
  return levels.features.flatMap((feature, level) => {
    const sign = monotone[feature]!;
    if (sign === 0) return [];
    const digit = 1 << (depth - 1 - level);
    const pairs: Pair[] = [];
    for (let leaf = 0; leaf < 1 << depth; leaf++) {
      if ((leaf & digit) !== 0 || !isReachable(levels, leaf) || !isReachable(levels, leaf | digit)) continue;
      pairs.push(sign > 0 ? [leaf, leaf | digit] : [leaf | digit, leaf]);
    }
    return [pairs];
  });
}

/** No row is above the higher of two thresholds of a feature and not above the lower. */
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

function alternateProjections(pairs: readonly Pair[][], values: Float64Array, weights: Float64Array): void {
  const corrections = pairs.map(() => new Float64Array(values.length));
  for (let round = 0; round < ROUNDS; round++) {
    pairs.forEach((of, level) => {
      const correction = corrections[level]!;
      for (const [low, high] of of) {
        const lowTarget = values[low]! + correction[low]!;
        const highTarget = values[high]! + correction[high]!;
        const pooled = (lowTarget * weights[low]! + highTarget * weights[high]!) / (weights[low]! + weights[high]!);
        values[low] = lowTarget <= highTarget ? lowTarget : pooled;
        values[high] = lowTarget <= highTarget ? highTarget : pooled;
        correction[low] = lowTarget - values[low]!;
        correction[high] = highTarget - values[high]!;
      }
    });
  }
}

/** Running maximum along each constrained level in turn; unreachable leaves must not lift the others. */
function sweep(levels: TreeLevels, monotone: Int8Array, values: Float64Array, depth: number): void {
  const lifted = values.slice(0, 1 << depth);
  const reachable = Array.from(lifted, (_, leaf) => isReachable(levels, leaf));
  reachable.forEach((is, leaf) => {
    if (!is) lifted[leaf] = Number.NEGATIVE_INFINITY;
  });
  levels.features.forEach((feature, level) => {
    const sign = monotone[feature]!;
    if (sign === 0) return;
    const digit = 1 << (depth - 1 - level);
    for (let leaf = 0; leaf < 1 << depth; leaf++) {
      if ((leaf & digit) !== 0) continue;
      const [low, high] = sign > 0 ? [leaf, leaf | digit] : [leaf | digit, leaf];
      lifted[high] = Math.max(lifted[high]!, lifted[low]!);
    }
  });
  reachable.forEach((is, leaf) => {
    if (is) values[leaf] = lifted[leaf]!;
  });
}
