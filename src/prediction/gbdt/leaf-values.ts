import { fitConstant, type Loss } from './loss.ts';
import { projectMonotone } from './monotone.ts';
import { type FittedTree, LEAVES, type TreeLevels } from './tree.ts';

export interface LeafInput {
  readonly levels: TreeLevels;
  readonly leafOfRow: Uint8Array;
  readonly residuals: Float64Array;
  /** 0 for rows that do not take part. */
  readonly weights: Float64Array;
}

export interface LeafRule {
  readonly loss: Loss;
  readonly l2: number;
  readonly learningRate: number;
  readonly monotone: Int8Array;
}

/** Gives the tree its leaf values, from the true residuals rather than the quantised gradients. */
export function fitLeaves(input: LeafInput, rule: LeafRule): FittedTree {
  const { values, covers } = rule.loss.kind === 'squared' ? averageLeaves(input) : fitEachLeaf(input, rule.loss);
  for (let leaf = 0; leaf < LEAVES; leaf++) {
    // Equation 5 of Chen & Guestrin 2016: sum of gradients over weight + l2.
    values[leaf]! *= covers[leaf]! > 0 ? (rule.learningRate * covers[leaf]!) / (covers[leaf]! + rule.l2) : 0;
  }
  projectMonotone(input.levels, rule.monotone, { values, weights: covers });
  return { ...input.levels, values, covers };
}

interface LeafTable {
  readonly values: Float64Array;
  readonly covers: Float64Array;
}

function averageLeaves({ leafOfRow, residuals, weights }: LeafInput): LeafTable {
  const values = new Float64Array(LEAVES);
  const covers = new Float64Array(LEAVES);
  for (let row = 0; row < leafOfRow.length; row++) {
    const leaf = leafOfRow[row]!;
    const weight = weights[row]!;
    values[leaf]! += weight * residuals[row]!;
    covers[leaf]! += weight;
  }
  for (let leaf = 0; leaf < LEAVES; leaf++) values[leaf]! /= covers[leaf]! || 1;
  return { values, covers };
}

function fitEachLeaf({ leafOfRow, residuals, weights }: LeafInput, loss: Loss): LeafTable {
  const values = new Float64Array(LEAVES);
  const covers = new Float64Array(LEAVES);
  const rowsByLeaf = groupRows(leafOfRow, weights);
  rowsByLeaf.forEach((rows, leaf) => {
    const leafWeights = Float64Array.from(rows, (row) => weights[row]!);
    values[leaf] = fitConstant(loss, {
      residuals: Float64Array.from(rows, (row) => residuals[row]!),
      weights: leafWeights,
    });
    covers[leaf] = leafWeights.reduce((sum, weight) => sum + weight, 0);
  });
  return { values, covers };
}

/** The rows of each leaf that take part. */
function groupRows(leafOfRow: Uint8Array, weights: Float64Array): Uint32Array[] {
  const ends = new Uint32Array(LEAVES + 1);
  for (let row = 0; row < leafOfRow.length; row++) if (weights[row]! > 0) ends[leafOfRow[row]! + 1]! += 1;
  for (let leaf = 0; leaf < LEAVES; leaf++) ends[leaf + 1]! += ends[leaf]!;
  const starts = ends.slice();
  const order = new Uint32Array(ends[LEAVES]!);
  for (let row = 0; row < leafOfRow.length; row++) {
    const leaf = leafOfRow[row]!;
    if (weights[row]! > 0) order[starts[leaf]!++] = row;
  }
  return Array.from({ length: LEAVES }, (_, leaf) => order.subarray(ends[leaf]!, ends[leaf + 1]!));
}
