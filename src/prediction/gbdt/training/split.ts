/** Searches the split of a tree level in TypeScript; `../assembly/train.ts` does the same in WebAssembly, which normally runs. */
import type { HistogramLayout } from './histogram.ts';

/** The constraints of a split; weights are in the units of the quantised weights. */
export interface SplitRule {
  readonly l2: number;
  readonly minChildWeight: number;
  /** +1: the prediction may not fall when the feature rises; -1: not rise; 0: free. One for each feature. */
  readonly monotone: Int8Array;
  /** 1 for the features that this tree may use. */
  readonly allowed: Uint8Array;
}

export interface Split {
  readonly feature: number;
  readonly threshold: number;
  readonly gain: number;
}

/** The histograms of all leaves of a level, one after the other. */
export interface LevelHistograms {
  readonly histograms: Float64Array;
  readonly leafCount: number;
}

/** The best (feature, threshold) for a whole level; ties go to the lower feature, then the lower threshold. */
export function findBestSplit(layout: HistogramLayout, level: LevelHistograms, rule: SplitRule): Split | undefined {
  let best: Split | undefined;
  const gains = new Float64Array(256);
  for (let feature = 0; feature < layout.binCounts.length; feature++) {
    const thresholds = layout.binCounts[feature]! - 1;
    if (thresholds < 1 || rule.allowed[feature] !== 1) continue;
    gains.fill(0);
    for (let leaf = 0; leaf < level.leafCount; leaf++) addLeafGains(layout, level, rule, { leaf, feature, gains });
    for (let threshold = 0; threshold < thresholds; threshold++) {
      const gain = gains[threshold]!;
      if (gain > (best?.gain ?? 0)) best = { feature, threshold, gain };
    }
  }
  return best;
}

interface LeafFeature {
  readonly leaf: number;
  readonly feature: number;
  readonly gains: Float64Array;
}

/**
 * Adds the gain of each threshold in this leaf: equation 7 of Chen & Guestrin 2016, without the per-leaf penalty. A leaf in which
 * the split would leave too little weight on a side, or would break monotonicity, stays whole and gains nothing: pooling both
 * sides is the projection onto the constraint.
 */
function addLeafGains(layout: HistogramLayout, level: LevelHistograms, rule: SplitRule, of: LeafFeature): void {
  const { histograms } = level;
  const { gains } = of;
  const { l2, minChildWeight } = rule;
  const sign = rule.monotone[of.feature]!;
  const start = 2 * (of.leaf * layout.totalBins + layout.offsets[of.feature]!);
  const last = layout.binCounts[of.feature]! - 1;
  let gradient = 0;
  let weight = 0;
  for (let bin = 0; bin <= last; bin++) {
    gradient += histograms[start + 2 * bin]!;
    weight += histograms[start + 2 * bin + 1]!;
  }
  if (weight < 2 * minChildWeight || weight === 0) return;
  const whole = (gradient * gradient) / (weight + l2);
  let left = 0;
  let leftWeight = 0;
  for (let bin = 0; bin < last; bin++) {
    left += histograms[start + 2 * bin]!;
    leftWeight += histograms[start + 2 * bin + 1]!;
    const right = gradient - left;
    const rightWeight = weight - leftWeight;
    // Equation 5: the best value of each side.
    const leftValue = left / (leftWeight + l2);
    const rightValue = right / (rightWeight + l2);
    if (leftWeight < minChildWeight || rightWeight < minChildWeight || sign * (rightValue - leftValue) < 0) continue;
    gains[bin]! += left * leftValue + right * rightValue - whole;
  }
}
