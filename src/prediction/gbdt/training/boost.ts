/** Trains a forest by gradient boosting, with early stopping and a fixed seed of its random numbers. */
import type { BinnedRows } from '../binning.ts';
import { createRandom, sampleMask } from '../random.ts';
import { createForest, type FittedTree, type Forest, MAX_DEPTH } from '../tree.ts';
import { assignLeaves, createPlainGrower } from './grow-tree.ts';
import { createWasmGrower } from './grow-tree-wasm.ts';
import { fitConstant, fitLeaves, type LeafRule } from './leaf-values.ts';
import { clipAtMedian, computeGradients, computeLoss, type Loss } from './loss.ts';
import { countGradientBits, countWeightBits, quantiseGradients, quantiseWeights } from './quantise.ts';
import { createSample } from './sample.ts';
import type { SplitRule } from './split.ts';

/** Rows with their targets. */
export interface TrainingSet {
  readonly rows: BinnedRows;
  /** One for each row. For latencies: log(observed / physics). */
  readonly target: Float64Array;
  /** One for each row, 0 or more; all 1 when left out. */
  readonly weights?: Float64Array;
}

export interface BoostOptions {
  readonly trees: number;
  /** 1 … 6. */
  readonly depth: number;
  readonly learningRate: number;
  /** Shrinks leaf values towards 0, as if each leaf also held this weight of residuals 0. */
  readonly l2: number;
  readonly minChildWeight: number;
  /** Share of the rows, and of the features, that each tree sees. */
  readonly rowShare: number;
  readonly featureShare: number;
  readonly loss: Loss;
  /**
   * Splits are searched on residuals clipped at this many times their median size, as in M-regression (Friedman 2001, algorithm
   * 4). If absent, they are searched on the gradient of the loss. The gradient of the absolute loss is only a sign, and does not
   * show where errors are large.
   */
  readonly splitClip?: number;
  /** One for each feature: with +1 the prediction may only rise with it, with -1 only fall; 0 is free. */
  readonly monotone?: readonly number[];
  /** Features that no tree may split by. */
  readonly unused?: readonly number[];
  readonly seed: number;
  /** The first prediction; the best constant when left out. */
  readonly base?: number;
  /** Both give the same forest; `wasm` falls back to `plain` if the machine cannot run it. */
  readonly kernel: 'wasm' | 'plain';
}

export interface EarlyStopping {
  readonly validation: TrainingSet;
  /** Training ends when the validation loss has not fallen for this many trees; the best count is kept. */
  readonly patience: number;
}

export const DEFAULT_BOOST_OPTIONS: BoostOptions = {
  trees: 200,
  depth: MAX_DEPTH,
  learningRate: 0.2,
  l2: 1,
  minChildWeight: 1,
  rowShare: 1,
  featureShare: 1,
  loss: { kind: 'squared' },
  seed: 1,
  kernel: 'wasm',
};

/** Gradient boosting (Friedman 2001, algorithm 1) with symmetric trees. The same input and seed give the same forest. */
export function trainForest(
  training: TrainingSet,
  options: Partial<BoostOptions> = {},
  stopping?: EarlyStopping,
): Forest {
  const chosen: BoostOptions = { ...DEFAULT_BOOST_OPTIONS, ...options };
  checkOptions(training, chosen);
  const run = startRun(training, chosen);
  const isSampled = chosen.rowShare < 1 || chosen.featureShare < 1;
  const watch = stopping && startWatch(stopping, chosen.loss, run.base);
  for (let t = 0; t < chosen.trees; t++) {
    const tree = run.addTree();
    // A split of other rows or features may still have a gain.
    if (tree === undefined && isSampled) continue;
    if (tree === undefined || watch?.isOver(tree) === true) break;
  }
  const trees = watch === undefined ? run.trees : run.trees.slice(0, watch.bestCount());
  return createForest(training.rows.binning, run.base, trees);
}

interface Run {
  readonly base: number;
  readonly trees: readonly FittedTree[];
  /** Undefined if no split has a gain. */
  addTree(): FittedTree | undefined;
}

function startRun(training: TrainingSet, options: BoostOptions): Run {
  const { rows, target } = training;
  const { loss, splitClip } = options;
  const weights = training.weights ?? new Float64Array(rows.rowCount).fill(1);
  const quantised = quantiseWeights(training.weights, rows.rowCount);
  const weightBits = countWeightBits(quantised.weights);
  const gradientBits = countGradientBits(weightBits, rows.rowCount);
  const wasm = options.kernel === 'plain' ? undefined : createWasmGrower(rows, weightBits);
  const grower = wasm ?? createPlainGrower(rows);
  const random = createRandom(options.seed);
  const sample = createSample(
    { weights, quantised: quantised.weights, share: options.rowShare, random },
    grower.weights,
  );
  const base = options.base ?? fitConstant(target, weights, loss);
  const residuals = target.map((value) => value - base);
  const gradients = new Float64Array(rows.rowCount);
  const rules = createRules(rows.binning.edges.length, quantised.scale, options);
  const trees: FittedTree[] = [];
  return {
    base,
    trees,
    addTree() {
      sample.draw();
      const splitLoss = splitClip === undefined ? loss : clipAtMedian(residuals, splitClip);
      computeGradients(splitLoss, { residuals, weights: sample.weights }, gradients);
      quantiseGradients(gradients, gradientBits, grower.gradients);
      const levels = grower.grow(options.depth, rules.nextSplitRule(random));
      if (levels.features.length === 0) return undefined;
      const { leafOfRow } = grower;
      const tree = fitLeaves(levels, { leafOfRow, residuals, weights: sample.weights }, rules.leaf);
      subtractTree(tree, leafOfRow, residuals);
      trees.push(tree);
      return tree;
    },
  };
}

interface Rules {
  readonly leaf: LeafRule;
  /** The split rule of one tree, with the features drawn for it. */
  nextSplitRule(random: () => number): SplitRule;
}

function createRules(featureCount: number, weightScale: number, options: BoostOptions): Rules {
  const { loss, l2, learningRate, featureShare } = options;
  const monotone = Int8Array.from({ length: featureCount }, (_, feature) => options.monotone?.[feature] ?? 0);
  const drawn = Math.max(1, Math.round(featureShare * featureCount));
  const drawFeatures = (random: () => number): Uint8Array => {
    const allowed =
      drawn === featureCount ? new Uint8Array(featureCount).fill(1) : sampleMask(featureCount, drawn, random);
    for (const feature of options.unused ?? []) allowed[feature] = 0;
    return allowed;
  };
  return {
    leaf: { loss, l2, learningRate, monotone },
    nextSplitRule: (random) => ({
      l2: Math.max(l2 / weightScale, 1e-9),
      // The limit is at least one unit, so that no side is without rows.
      minChildWeight: Math.max(options.minChildWeight / weightScale, 1),
      monotone,
      allowed: drawFeatures(random),
    }),
  };
}

function subtractTree(tree: FittedTree, leafOfRow: Uint8Array, residuals: Float64Array): void {
  for (let row = 0; row < residuals.length; row++) residuals[row]! -= tree.values[leafOfRow[row]!]!;
}

interface Watch {
  isOver(tree: FittedTree): boolean;
  bestCount(): number;
}

function startWatch(stopping: EarlyStopping, loss: Loss, base: number): Watch {
  const { rows, target, weights } = stopping.validation;
  const residuals = target.map((value) => value - base);
  const leafOfRow = new Uint8Array(rows.rowCount);
  const average = (): number => residuals.reduce((sum, r, i) => sum + (weights?.[i] ?? 1) * computeLoss(loss, r), 0);
  let [count, bestCount, bestLoss] = [0, 0, average()];
  return {
    bestCount: () => bestCount,
    isOver(tree) {
      assignLeaves(rows, tree, leafOfRow);
      subtractTree(tree, leafOfRow, residuals);
      count += 1;
      const current = average();
      if (current < bestLoss) [bestCount, bestLoss] = [count, current];
      return count - bestCount >= stopping.patience;
    },
  };
}

/** A forest stores the number of a feature in one byte. */
const MAX_FEATURES = 255;

function checkOptions({ rows, target, weights }: TrainingSet, options: BoostOptions): void {
  if (target.length !== rows.rowCount || (weights !== undefined && weights.length !== rows.rowCount)) {
    throw new RangeError(`Cannot train: ${rows.rowCount} rows, but ${target.length} targets`);
  }
  const featureCount = rows.binning.edges.length;
  if (featureCount > MAX_FEATURES) {
    throw new RangeError(`Cannot train: features must be ${MAX_FEATURES} at most, got ${featureCount}`);
  }
  if (!target.every(Number.isFinite)) throw new RangeError('Cannot train: every target must be finite');
  const ranges: [name: string, value: number, low: number, high: number][] = [
    ['depth', options.depth, 1, MAX_DEPTH],
    ['learningRate', options.learningRate, 1e-6, 1],
    ['rowShare', options.rowShare, 1e-6, 1],
    ['featureShare', options.featureShare, 1e-6, 1],
    ['l2', options.l2, 0, Number.MAX_VALUE],
    ['minChildWeight', options.minChildWeight, 0, Number.MAX_VALUE],
    ['splitClip', options.splitClip ?? 1, 1e-6, Number.MAX_VALUE],
  ];
  for (const [name, value, low, high] of ranges) {
    if (!(value >= low && value <= high)) {
      throw new RangeError(`Cannot train: ${name} must be ${low} … ${high}, got ${value}`);
    }
  }
}
