import { type LeafRows, selectLeafQuantiles } from './leaf-quantiles.ts';
import { clip, type Loss } from './loss.ts';
import { projectMonotone } from './monotone.ts';
import { type FittedTree, LEAVES, type TreeLevels } from './tree.ts';

export interface LeafRule {
  readonly loss: Loss;
  readonly l2: number;
  readonly learningRate: number;
  readonly monotone: Int8Array;
}

/** Gives the tree its leaf values, from the true residuals rather than the quantised gradients. */
export function fitLeaves(levels: TreeLevels, rows: LeafRows, rule: LeafRule): FittedTree {
  const covers = sumCovers(rows);
  const values = fitEachLeaf(rows, covers, rule.loss);
  for (let leaf = 0; leaf < LEAVES; leaf++) {
    // Equation 5 of Chen & Guestrin 2016: sum of gradients over weight + l2.
    values[leaf]! *= covers[leaf]! > 0 ? (rule.learningRate * covers[leaf]!) / (covers[leaf]! + rule.l2) : 0;
  }
  projectMonotone(levels, rule.monotone, { values, weights: covers });
  return { ...levels, values, covers };
}

/** The constant that minimises the loss of these residuals. */
export function fitConstant(residuals: Float64Array, weights: Float64Array, loss: Loss): number {
  const rows = { leafOfRow: new Uint8Array(residuals.length), residuals, weights };
  return fitEachLeaf(rows, sumCovers(rows), loss)[0]!;
}

/** For every leaf, the constant that minimises the loss of its residuals. */
function fitEachLeaf(rows: LeafRows, covers: Float64Array, loss: Loss): Float64Array {
  switch (loss.kind) {
    case 'squared':
      return averageLeaves(rows, covers);
    case 'absolute':
      return selectLeafQuantiles(rows, 0.5);
    case 'quantile':
      return selectLeafQuantiles(rows, loss.level);
    case 'huber': {
      // One step from the median (Friedman 2001, equation 24).
      const medians = selectLeafQuantiles(rows, 0.5);
      const { leafOfRow } = rows;
      const clipped = rows.residuals.map((residual, row) => clip(residual - medians[leafOfRow[row]!]!, loss.delta));
      const steps = averageLeaves({ ...rows, residuals: clipped }, covers);
      return medians.map((median, leaf) => median + steps[leaf]!);
    }
  }
}

function sumCovers({ leafOfRow, weights }: LeafRows): Float64Array {
  const covers = new Float64Array(LEAVES);
  for (let row = 0; row < leafOfRow.length; row++) covers[leafOfRow[row]!]! += weights[row]!;
  return covers;
}

function averageLeaves({ leafOfRow, residuals, weights }: LeafRows, covers: Float64Array): Float64Array {
  const sums = new Float64Array(LEAVES);
  for (let row = 0; row < leafOfRow.length; row++) sums[leafOfRow[row]!]! += weights[row]! * residuals[row]!;
  return sums.map((sum, leaf) => (covers[leaf]! > 0 ? sum / covers[leaf]! : 0));
}
