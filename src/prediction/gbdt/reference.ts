/**
 * Trains symmetric trees slowly and plainly, for tests to compare the fast implementation with. It works on real values, tries
 * every cut, computes every sum again for each node, and recurses instead of filling tables.
 */

export interface ReferenceLevel {
  readonly feature: number;
  readonly cut: number;
}

export interface ReferenceTree {
  readonly levels: readonly ReferenceLevel[];
  /** Values by the digits of a row, the first level first, "" for a tree without levels. */
  readonly values: ReadonlyMap<string, number>;
}

export interface ReferenceForest {
  readonly base: number;
  readonly trees: readonly ReferenceTree[];
}

export interface ReferenceOptions {
  readonly trees: number;
  readonly depth: number;
  readonly learningRate: number;
  readonly l2: number;
  readonly minChildWeight: number;
}

interface Row {
  readonly values: readonly number[];
  readonly weight: number;
  residual: number;
}

export function trainReference(
  columns: readonly ArrayLike<number>[],
  target: ArrayLike<number>,
  weights: ArrayLike<number>,
  options: ReferenceOptions,
): ReferenceForest {
  const rows: Row[] = Array.from(target, (residual, i) => ({
    values: columns.map((column) => column[i]!),
    weight: weights[i]!,
    residual,
  }));
  const totalWeight = sum(rows, (row) => row.weight);
  const base = sum(rows, (row) => row.weight * row.residual) / totalWeight;
  for (const row of rows) row.residual -= base;
  const trees: ReferenceTree[] = [];
  for (let t = 0; t < options.trees; t++) {
    const tree = growReference(rows, options);
    trees.push(tree);
    for (const row of rows) row.residual -= evaluateTree(tree, row.values);
  }
  return { base, trees };
}

export function evaluateReference(forest: ReferenceForest, values: readonly number[]): number {
  return forest.trees.reduce((total, tree) => total + evaluateTree(tree, values), forest.base);
}

function evaluateTree(tree: ReferenceTree, values: readonly number[]): number {
  return tree.values.get(digitsOf(tree.levels, values)) ?? 0;
}

function digitsOf(levels: readonly ReferenceLevel[], values: readonly number[]): string {
  return levels.map(({ feature, cut }) => (values[feature]! > cut ? '1' : '0')).join('');
}

function growReference(rows: readonly Row[], options: ReferenceOptions): ReferenceTree {
  const levels: ReferenceLevel[] = [];
  while (levels.length < options.depth) {
    const leaves = [...Map.groupBy(rows, (row) => digitsOf(levels, row.values)).values()];
    const best = findBestLevel(rows, leaves, options);
    if (best === undefined) break;
    levels.push(best);
  }
  const leaves = Map.groupBy(rows, (row) => digitsOf(levels, row.values));
  const values = new Map(
    [...leaves].map(([digits, leaf]) => [digits, options.learningRate * bestValue(leaf, options.l2)]),
  );
  return { levels, values };
}

function findBestLevel(
  rows: readonly Row[],
  leaves: readonly (readonly Row[])[],
  options: ReferenceOptions,
): ReferenceLevel | undefined {
  let best: ReferenceLevel | undefined;
  let bestGain = 1e-9;
  const featureCount = rows[0]?.values.length ?? 0;
  for (let feature = 0; feature < featureCount; feature++) {
    for (const cut of listCuts(rows, feature)) {
      const gain = sum(leaves, (leaf) => gainOf(leaf, { feature, cut }, options));
      if (gain > bestGain * (1 + 1e-12)) [best, bestGain] = [{ feature, cut }, gain];
    }
  }
  return best;
}

function listCuts(rows: readonly Row[], feature: number): number[] {
  const distinct = [...new Set(rows.map((row) => row.values[feature]!))].sort((a, b) => a - b);
  return distinct.slice(1).map((value, i) => (distinct[i]! + value) / 2);
}

function gainOf(leaf: readonly Row[], level: ReferenceLevel, options: ReferenceOptions): number {
  const left = leaf.filter((row) => row.values[level.feature]! <= level.cut);
  const right = leaf.filter((row) => row.values[level.feature]! > level.cut);
  const isTooSmall = (side: readonly Row[]): boolean => sum(side, (row) => row.weight) < options.minChildWeight;
  if (isTooSmall(left) || isTooSmall(right)) return 0;
  return scoreOf(left, options.l2) + scoreOf(right, options.l2) - scoreOf(leaf, options.l2);
}

/** G² / (H + λ), as in equation 7 of Chen & Guestrin 2016. */
function scoreOf(leaf: readonly Row[], l2: number): number {
  return sum(leaf, (row) => row.weight * row.residual) * bestValue(leaf, l2);
}

/** G / (H + λ), equation 5. */
function bestValue(leaf: readonly Row[], l2: number): number {
  const weight = sum(leaf, (row) => row.weight);
  return weight > 0 ? sum(leaf, (row) => row.weight * row.residual) / (weight + l2) : 0;
}

function sum<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}
