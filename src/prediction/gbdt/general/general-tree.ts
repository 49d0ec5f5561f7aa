/**
 * Defines trees of any shape, as other libraries train them, and sums them over rows. They are slower than symmetric trees, since
 * a row walks node by node.
 */
export interface GeneralForest {
  readonly featureCount: number;
  /** Added to the sum of the trees. */
  readonly base: number;
  /** The link function of the sum: identity, or exponential (Poisson, gamma, Tweedie). */
  readonly link: 'identity' | 'exp';
  /** How the library keeps values before it compares them. */
  readonly precision: 'single' | 'double';
  /** The first node of each tree. */
  readonly roots: Int32Array;
  /** The feature that each node compares, or -1 for a leaf. */
  readonly features: Int32Array;
  /** The threshold of each node: values at or below it go left. For a leaf, its value. */
  readonly thresholds: Float64Array;
  readonly left: Int32Array;
  readonly right: Int32Array;
  readonly missing: Uint8Array;
  /** The weight of the training rows that passed each node; expectations are weighted by it. */
  readonly covers: Float64Array;
}

/** Which values count as missing at a node, in the lower two bits (0: none), and whether they go left. */
export const MISSING_ZERO = 1;
export const MISSING_NAN = 2;
export const MISSING_GOES_LEFT = 4;

/** A node as a reader of a model file finds it; children are positions within the same tree. */
export type GeneralNode =
  | { readonly leaf: number; readonly cover: number }
  | {
      readonly feature: number;
      readonly threshold: number;
      readonly left: number;
      readonly right: number;
      readonly missing: number;
      readonly cover: number;
    };

export interface GeneralForestInput {
  readonly featureCount: number;
  readonly base: number;
  readonly link: GeneralForest['link'];
  readonly precision: GeneralForest['precision'];
  /** The first node of a tree is its root; a child comes after its parent in the array. */
  readonly trees: readonly (readonly GeneralNode[])[];
}

/** Throws a RangeError if a node points out of its tree or uses a feature that does not exist. */
export function createGeneralForest({ trees, ...input }: GeneralForestInput): GeneralForest {
  const count = trees.reduce((sum, tree) => sum + tree.length, 0);
  const forest = {
    ...input,
    roots: new Int32Array(trees.length),
    features: new Int32Array(count).fill(-1),
    thresholds: new Float64Array(count),
    left: new Int32Array(count),
    right: new Int32Array(count),
    missing: new Uint8Array(count),
    covers: new Float64Array(count),
  };
  let start = 0;
  trees.forEach((tree, t) => {
    forest.roots[t] = start;
    tree.forEach((node, n) => {
      writeNode(forest, start + n, node, start);
    });
    start += tree.length;
  });
  checkForest(forest);
  return forest;
}

/**
 * Limits of an imported forest. The depth bounds the comparisons for a row, and the recursion that explains one; trees of 31
 * leaves are at most 30 deep.
 */
export const GENERAL_LIMITS = { depth: 512, trees: 100_000, nodes: 10_000_000, features: 10_000 } as const;

/**
 * Throws a RangeError unless the children of each node come after it in the same tree, each child has one parent, and the forest
 * is within its limits. A node with two parents would double the paths to its leaves.
 */
export function checkForest(forest: GeneralForest): void {
  const { roots, features } = forest;
  checkLimit('trees', roots.length, GENERAL_LIMITS.trees);
  checkLimit('nodes', features.length, GENERAL_LIMITS.nodes);
  checkLimit('features', forest.featureCount, GENERAL_LIMITS.features);
  if (!Number.isFinite(forest.base)) throw new RangeError('Cannot read the forest: its base must be a finite number');
  for (let tree = 0; tree < roots.length; tree++) {
    const [start, end] = [roots[tree]!, roots[tree + 1] ?? features.length];
    if (!(start >= 0 && start < end && end <= features.length))
      throw new RangeError(`Cannot read tree ${tree}: it is empty`);
    for (let node = start; node < end; node++)
      if (!isWellFormed(forest, node, end))
        throw new RangeError(`Cannot read tree ${tree}: node ${node - start} is not well formed`);
    checkShape(forest, tree, { start, end });
  }
}

function checkLimit(name: string, count: number, limit: number): void {
  if (!(count >= 0 && count <= limit))
    throw new RangeError(`Cannot read the forest: it must have at most ${limit} ${name}, got ${count}`);
}

function checkShape({ features, left, right }: GeneralForest, tree: number, { start, end }: NodeRange): void {
  const depths = new Uint16Array(end - start);
  for (let node = start; node < end; node++) {
    if (features[node]! < 0) continue;
    for (const child of [left[node]!, right[node]!]) {
      if (depths[child - start] !== 0)
        throw new RangeError(`Cannot read tree ${tree}: node ${child - start} must have one parent`);
      depths[child - start] = depths[node - start]! + 1;
      if (depths[child - start]! > GENERAL_LIMITS.depth)
        throw new RangeError(`Cannot read tree ${tree}: it must be at most ${GENERAL_LIMITS.depth} levels deep`);
    }
  }
}

interface NodeRange {
  readonly start: number;
  readonly end: number;
}

function isWellFormed(forest: GeneralForest, node: number, end: number): boolean {
  const feature = forest.features[node]!;
  const threshold = forest.thresholds[node]!;
  if (!(forest.covers[node]! >= 0 && forest.covers[node]! < Number.POSITIVE_INFINITY)) return false;
  if (feature < 0) return Number.isFinite(threshold);
  const [left, right] = [forest.left[node]!, forest.right[node]!];
  const leadsOn = left > node && left < end && right > node && right < end;
  return leadsOn && feature < forest.featureCount && !Number.isNaN(threshold);
}

function writeNode(forest: GeneralForest, at: number, node: GeneralNode, start: number): void {
  forest.covers[at] = node.cover;
  if ('leaf' in node) {
    forest.thresholds[at] = node.leaf;
    return;
  }
  // Here a negative feature is invalid; it does not mark a leaf.
  forest.features[at] = node.feature >= 0 ? node.feature : forest.featureCount;
  forest.thresholds[at] = node.threshold;
  forest.left[at] = start + node.left;
  forest.right[at] = start + node.right;
  forest.missing[at] = node.missing;
}

export interface GeneralRows {
  /** One column after the other: row `i` of feature `f` is `values[f * stride + i]`. */
  readonly values: ArrayLike<number>;
  readonly stride: number;
  readonly count: number;
}

/** Fills the first `count` entries of `outputs`. */
export function evaluateGeneralForest(forest: GeneralForest, rows: GeneralRows, outputs: Float64Array): void {
  const { roots, base, link } = forest;
  outputs.fill(base, 0, rows.count);
  // Goes tree by tree, so that the nodes of a tree stay in the cache for all rows.
  for (let tree = 0; tree < roots.length; tree++) addTree(forest, roots[tree]!, rows, outputs);
  if (link === 'exp') for (let row = 0; row < rows.count; row++) outputs[row] = Math.exp(outputs[row]!);
}

function addTree(forest: GeneralForest, root: number, rows: GeneralRows, outputs: Float64Array): void {
  const { features, thresholds, left, right, missing } = forest;
  const { values, stride, count } = rows;
  for (let row = 0; row < count; row++) {
    let node = root;
    for (let feature = features[node]!; feature >= 0; feature = features[node]!) {
      const value = values[feature * stride + row]!;
      node = goesLeft(value, thresholds[node]!, missing[node]!) ? left[node]! : right[node]!;
    }
    outputs[row]! += thresholds[node]!;
  }
}

/** LightGBM treats any value this near to 0 as 0. */
const ZERO = 1e-35;

export function goesLeft(value: number, threshold: number, missing: number): boolean {
  const kind = missing & 3;
  const isNan = Number.isNaN(value);
  if (kind === MISSING_NAN && isNan) return (missing & MISSING_GOES_LEFT) !== 0;
  const known = isNan ? 0 : value;
  if (kind === MISSING_ZERO && Math.abs(known) <= ZERO) return (missing & MISSING_GOES_LEFT) !== 0;
  return known <= threshold;
}
