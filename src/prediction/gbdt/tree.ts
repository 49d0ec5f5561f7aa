/** Defines a symmetric tree and its forest: levels, thresholds, leaves. */
import type { Binning } from './binning.ts';

/** The levels of a symmetric tree, whose leaves fill a table of 64 entries. The first levels of a shallower tree never split. */
export const MAX_DEPTH = 6;
export const LEAVES = 1 << MAX_DEPTH;
/** No bin is above it: a level with this threshold always gives the digit 0. */
export const NEVER = 255;

/**
 * A sum of symmetric (oblivious) trees: one (feature, threshold) a level, the same for every node of that level
 * (Prokhorenkova et al. 2018, CatBoost, section 4). The leaf of a row is the number whose binary digits, the first
 * level first, say whether its bin is above the level's threshold.
 *
 * Leaves are 16-bit whole numbers in units of `leafScale`, so that every kernel gives the same sum, in whatever order it adds.
 */
export interface Forest {
  readonly binning: Binning;
  readonly treeCount: number;
  /** The prediction before any tree. */
  readonly base: number;
  readonly leafScale: number;
  /** `treeCount × MAX_DEPTH`. */
  readonly features: Uint8Array;
  /** `treeCount × MAX_DEPTH`; a row goes to 1 when its bin is above. */
  readonly thresholds: Uint8Array;
  /** `treeCount × LEAVES`, in units of `leafScale`. */
  readonly leaves: Int16Array;
  /** `treeCount × LEAVES`: the weight of the training rows in each leaf; expectations are weighted by it. */
  readonly covers: Float32Array;
}

/** The levels of one tree, before it has leaves. Both have `depth` entries. */
export interface TreeLevels {
  readonly features: readonly number[];
  readonly thresholds: readonly number[];
}

/** One tree with leaves as they were fitted, not rounded yet. */
export interface FittedTree extends TreeLevels {
  /** LEAVES entries, of which only those that its levels can reach are used. */
  readonly values: Float64Array;
  readonly covers: Float64Array;
}

/** Packs fitted trees, rounding their leaves to one scale. */
export function createForest(binning: Binning, base: number, trees: readonly FittedTree[]): Forest {
  const leafScale = chooseLeafScale(trees);
  const features = new Uint8Array(trees.length * MAX_DEPTH);
  const thresholds = new Uint8Array(trees.length * MAX_DEPTH).fill(NEVER);
  const leaves = new Int16Array(trees.length * LEAVES);
  const covers = new Float32Array(trees.length * LEAVES);
  trees.forEach((tree, t) => {
    // Unused levels come first, so that the leaves in use are the first of the table.
    const unused = MAX_DEPTH - tree.features.length;
    features.set(tree.features, t * MAX_DEPTH + unused);
    thresholds.set(tree.thresholds, t * MAX_DEPTH + unused);
    covers.set(tree.covers, t * LEAVES);
    for (let leaf = 0; leaf < LEAVES; leaf++) leaves[t * LEAVES + leaf] = Math.round(tree.values[leaf]! / leafScale);
  });
  return { binning, treeCount: trees.length, base, leafScale, features, thresholds, leaves, covers };
}

/** The first trees of a forest. */
export function truncateForest(forest: Forest, treeCount: number): Forest {
  const count = Math.min(treeCount, forest.treeCount);
  return {
    ...forest,
    treeCount: count,
    features: forest.features.slice(0, count * MAX_DEPTH),
    thresholds: forest.thresholds.slice(0, count * MAX_DEPTH),
    leaves: forest.leaves.slice(0, count * LEAVES),
    covers: forest.covers.slice(0, count * LEAVES),
  };
}

function chooseLeafScale(trees: readonly FittedTree[]): number {
  let largest = 0;
  for (const tree of trees) for (const value of tree.values) largest = Math.max(largest, Math.abs(value));
  return largest > 0 ? largest / 32_767 : 1;
}
