/** Explains a prediction of trees of any shape by exact Shapley values (TreeSHAP, Lundberg et al. 2020). */
import type { Explanation } from '../shap.ts';
import { type GeneralForest, goesLeft } from './general-tree.ts';

/**
 * Shapley values of one row in trees of any shape, exact, by the same game as `shap.ts` (TreeSHAP, Lundberg et al.
 * 2020), before the link. A leaf's worth to a coalition is a product over the features on its path: 1 or 0 for one in
 * the coalition, whether the row goes that way; else the share of training rows that did. So each leaf is a game of
 * its own with a few players, and games add.
 */
export function explainGeneralRow(forest: GeneralForest, row: ArrayLike<number>): Explanation {
  const contributions = new Float64Array(forest.featureCount);
  let expectation = forest.base;
  for (const root of forest.roots) expectation += explainNode({ forest, row, contributions }, root, []);
  return { expectation, contributions };
}

/** One feature on the path to a node, all of its splits together. */
interface Player {
  readonly feature: number;
  /** 1 while the row goes this way, else 0. */
  readonly follows: number;
  /** The share of training rows that went this way. */
  readonly share: number;
}

interface Explained {
  readonly forest: GeneralForest;
  readonly row: ArrayLike<number>;
  readonly contributions: Float64Array;
}

/** Adds what the leaves below contribute; returns their part of the expectation. */
function explainNode(explained: Explained, node: number, path: readonly Player[]): number {
  const { forest, row } = explained;
  const feature = forest.features[node]!;
  if (feature < 0) return explainLeaf(explained, forest.thresholds[node]!, path);
  const isLeft = goesLeft(row[feature]!, forest.thresholds[node]!, forest.missing[node]!);
  const [left, right] = [forest.left[node]!, forest.right[node]!];
  const cover = forest.covers[left]! + forest.covers[right]!;
  const leftShare = cover > 0 ? forest.covers[left]! / cover : 0.5;
  const below = explainNode(explained, left, extendPath(path, feature, isLeft, leftShare));
  return below + explainNode(explained, right, extendPath(path, feature, !isLeft, 1 - leftShare));
}

function extendPath(path: readonly Player[], feature: number, isFollowed: boolean, share: number): Player[] {
  const before = path.find((player) => player.feature === feature);
  const follows = isFollowed ? (before?.follows ?? 1) : 0;
  const player = { feature, follows, share: share * (before?.share ?? 1) };
  return [...path.filter((other) => other !== before), player];
}

function explainLeaf({ contributions }: Explained, leaf: number, path: readonly Player[]): number {
  for (const player of path) {
    const others = path.filter((other) => other !== player);
    contributions[player.feature]! += leaf * (player.follows - player.share) * averageWorth(others);
  }
  return path.reduce((worth, player) => worth * player.share, leaf);
}

/** The leaf's worth, for each size of coalition summed over all of them, weighed by Equation 4 of Shapley 1953. */
function averageWorth(players: readonly Player[]): number {
  const worths = new Float64Array(players.length + 1);
  worths[0] = 1;
  for (const [count, { follows, share }] of players.entries()) {
    for (let size = count + 1; size > 0; size--) worths[size] = worths[size]! * share + worths[size - 1]! * follows;
    worths[0]! *= share;
  }
  // 1 / (n · C(n − 1, size)), for the n players that these and the one in question are.
  let weight = 1 / worths.length;
  let average = 0;
  for (let size = 0; size < worths.length; size++) {
    average += weight * worths[size]!;
    weight *= (size + 1) / (players.length - size);
  }
  return average;
}
