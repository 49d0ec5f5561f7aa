/** Explains a prediction by Shapley values: what moved it away from the average (TreeSHAP). */
import { findBin } from './binning.ts';
import { type Forest, LEAVES, MAX_DEPTH, NEVER } from './tree.ts';

/** How far each feature moved a prediction away from the average one; `expectation` and all contributions sum to the prediction. */
export interface Explanation {
  readonly expectation: number;
  /** One for each feature. */
  readonly contributions: Float64Array;
}

/**
 * Shapley values of one row, exact, by the path-dependent game of TreeSHAP (Lundberg et al. 2020): a feature outside the
 * coalition lets each node send the row both ways, in the shares of the training rows. A symmetric tree uses at most six
 * features, so all of its coalitions, at most 64, are evaluated.
 */
export function explainRow(forest: Forest, row: ArrayLike<number>): Explanation {
  const { edges } = forest.binning;
  const bins = Uint8Array.from(edges, (cuts, feature) => findBin(cuts, Math.fround(row[feature]!)));
  const contributions = new Float64Array(edges.length);
  let expectation = forest.base;
  for (let tree = 0; tree < forest.treeCount; tree++) expectation += explainTree(forest, tree, bins, contributions);
  return { expectation, contributions };
}

/** Adds the tree's contributions; returns its expectation. */
function explainTree(forest: Forest, tree: number, bins: Uint8Array, contributions: Float64Array): number {
  const levels = listLevels(forest, tree, bins);
  const players = [...new Set(levels.map((level) => level.feature))];
  const covers = sumCovers(forest.covers.subarray(tree * LEAVES, (tree + 1) * LEAVES), levels.length);
  const leaves = forest.leaves.subarray(tree * LEAVES, (tree + 1) * LEAVES);
  const worths = Float64Array.from({ length: 1 << players.length }, (_, coalition) => {
    const isFixed = levels.map((level) => ((coalition >> players.indexOf(level.feature)) & 1) === 1);
    return forest.leafScale * evaluateCoalition({ levels, covers, leaves, isFixed }, 1, 0);
  });
  players.forEach((feature, player) => {
    contributions[feature]! += shapleyValue(worths, player, players.length);
  });
  return worths[0]!;
}

interface Level {
  readonly feature: number;
  /** Where the row goes: 0 or 1. */
  readonly digit: number;
}

function listLevels(forest: Forest, tree: number, bins: Uint8Array): Level[] {
  const levels: Level[] = [];
  for (let at = tree * MAX_DEPTH; at < (tree + 1) * MAX_DEPTH; at++) {
    const [feature, threshold] = [forest.features[at]!, forest.thresholds[at]!];
    if (threshold !== NEVER) levels.push({ feature, digit: bins[feature]! > threshold ? 1 : 0 });
  }
  return levels;
}

/** The cover of every node; the root is node 1, the children of `n` are `2n` and `2n + 1`, the leaves come last. */
function sumCovers(leaves: Float32Array, depth: number): Float64Array {
  const covers = new Float64Array(2 << depth);
  for (let node = covers.length - 1; node > 0; node--) {
    covers[node] = node >= 1 << depth ? leaves[node - (1 << depth)]! : covers[2 * node]! + covers[2 * node + 1]!;
  }
  return covers;
}

interface Coalition {
  readonly levels: readonly Level[];
  readonly covers: Float64Array;
  readonly leaves: Int16Array;
  /** Whether the feature of each level is in the coalition. */
  readonly isFixed: readonly boolean[];
}

function evaluateCoalition(of: Coalition, node: number, depth: number): number {
  const { levels, covers, leaves, isFixed } = of;
  if (depth === levels.length) return leaves[node - (1 << depth)]!;
  if (isFixed[depth] === true) return evaluateCoalition(of, 2 * node + levels[depth]!.digit, depth + 1);
  // A node that no training row reached sends the row both ways with equal shares.
  const share = covers[node]! > 0 ? covers[2 * node + 1]! / covers[node]! : 0.5;
  const above = share > 0 ? share * evaluateCoalition(of, 2 * node + 1, depth + 1) : 0;
  return above + (share < 1 ? (1 - share) * evaluateCoalition(of, 2 * node, depth + 1) : 0);
}

/** Equation 4 of Shapley 1953: what the player adds, averaged over all orders in which players may come. */
function shapleyValue(worths: Float64Array, player: number, playerCount: number): number {
  let value = 0;
  for (let coalition = 0; coalition < worths.length; coalition++) {
    if (((coalition >> player) & 1) === 1) continue;
    const size = countBits(coalition);
    const weight = (factorial(size) * factorial(playerCount - size - 1)) / factorial(playerCount);
    value += weight * (worths[coalition | (1 << player)]! - worths[coalition]!);
  }
  return value;
}

function countBits(value: number): number {
  let count = 0;
  for (let rest = value; rest > 0; rest &= rest - 1) count += 1;
  return count;
}

function factorial(n: number): number {
  return n <= 1 ? 1 : n * factorial(n - 1);
}
