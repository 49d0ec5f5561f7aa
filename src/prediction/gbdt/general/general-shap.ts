/** Explains a prediction of trees of any shape by exact Shapley values (TreeSHAP, Lundberg et al. 2020). */
import type { Explanation } from '../shap.ts';
import { type GeneralForest, goesLeft } from './general-tree.ts';

/**
 * Returns exact Shapley values of one row in trees of any shape, before the link, by the same game as `shap.ts` (TreeSHAP,
 * Lundberg et al. 2020). The worth of a leaf to a coalition is a product over the features on its path. A feature in the
 * coalition counts 1 if the row goes that way, else 0. Another feature counts the share of training rows that went that way. So
 * each leaf is a game with a few players, and the values of all games are added up.
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

/** Returns the mean worth of the leaf: worths are summed for each size of coalition, and weighted by Equation 4 of Shapley 1953. */
function averageWorth(players: readonly Player[]): number {
  const worths = new Float64Array(players.length + 1);
  worths[0] = 1;
  for (const [count, { follows, share }] of players.entries()) {
    for (let size = count + 1; size > 0; size--) worths[size] = worths[size]! * share + worths[size - 1]! * follows;
    worths[0]! *= share;
  }
  // 1 / (n · C(n − 1, size)), where n counts these players and the one in question.
  let weight = 1 / worths.length;
  let average = 0;
  for (let size = 0; size < worths.length; size++) {
    average += weight * worths[size]!;
    weight *= (size + 1) / (players.length - size);
  }
  return average;
}
