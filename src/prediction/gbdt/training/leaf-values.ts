/** Fits the values of leaves by the loss, under monotone constraints. */
import { type FittedTree, LEAVES, type TreeLevels } from '../tree.ts';
import { type LeafRows, selectLeafQuantiles } from './leaf-quantiles.ts';
import { clip, type Loss } from './loss.ts';
import { projectMonotone } from './monotone.ts';

export interface LeafRule {
  readonly loss: Loss;
  readonly l2: number;
  readonly learningRate: number;
  readonly monotone: Int8Array;
}

/** Gives the tree its leaf values, from the true residuals rather than the quantised gradients. */
export function fitLeaves(levels: TreeLevels, rows: LeafRows, rule: LeafRule): FittedTree {
  const { values, covers } = fitEachLeaf(rows, rule.loss);
  for (let leaf = 0; leaf < LEAVES; leaf++) {
    // Equation 5 of Chen & Guestrin 2016: sum of gradients over weight + l2.
    values[leaf]! *= covers[leaf]! > 0 ? (rule.learningRate * covers[leaf]!) / (covers[leaf]! + rule.l2) : 0;
  }
  projectMonotone(levels, rule.monotone, { values, weights: covers });
  return { ...levels, values, covers };
}

/** The constant that minimises the loss of these residuals. */
export function fitConstant(residuals: Float64Array, weights: Float64Array, loss: Loss): number {
  return fitEachLeaf({ leafOfRow: new Uint8Array(residuals.length), residuals, weights }, loss).values[0]!;
}

interface LeafTable {
  readonly values: Float64Array;
  /** The sum of the weights in each leaf. */
  readonly covers: Float64Array;
}

/** Finds, for every leaf, the constant that minimises the loss of its residuals. */
function fitEachLeaf(rows: LeafRows, loss: Loss): LeafTable {
  switch (loss.kind) {
    case 'squared':
      return averageLeaves(rows);
    case 'absolute':
      return { ...averageLeaves(rows), values: selectLeafQuantiles(rows, 0.5) };
    case 'quantile':
      return { ...averageLeaves(rows), values: selectLeafQuantiles(rows, loss.level) };
    case 'huber': {
      // One step from the median (Friedman 2001, equation 24).
      const medians = selectLeafQuantiles(rows, 0.5);
      const clipped = rows.residuals.map((residual, row) =>
        clip(residual - medians[rows.leafOfRow[row]!]!, loss.delta),
      );
      const steps = averageLeaves({ ...rows, residuals: clipped });
      return { covers: steps.covers, values: medians.map((median, leaf) => median + steps.values[leaf]!) };
    }
  }
}

function averageLeaves({ leafOfRow, residuals, weights }: LeafRows): LeafTable {
  const values = new Float64Array(LEAVES);
  const covers = new Float64Array(LEAVES);
  for (let row = 0; row < leafOfRow.length; row++) {
    const leaf = leafOfRow[row]!;
    values[leaf]! += weights[row]! * residuals[row]!;
    covers[leaf]! += weights[row]!;
  }
  for (let leaf = 0; leaf < LEAVES; leaf++) values[leaf]! /= covers[leaf]! || 1;
  return { values, covers };
}
