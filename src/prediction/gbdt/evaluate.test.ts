import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fitBinning } from './binning.ts';
import { createEvaluator } from './evaluate.ts';
import { createRandom } from './random.ts';
import { createForest, type Forest, LEAVES, truncateForest } from './tree.ts';

const KERNELS = ['plain', 'wasm'] as const;

interface Shape {
  readonly features: number;
  readonly trees: number;
  readonly depth: number;
  readonly rows: number;
  readonly seed: number;
}

const shape: fc.Arbitrary<Shape> = fc.record({
  features: fc.integer({ min: 1, max: 30 }),
  trees: fc.integer({ min: 0, max: 600 }),
  depth: fc.integer({ min: 0, max: 6 }),
  rows: fc.integer({ min: 1, max: 70 }),
  seed: fc.nat(),
});

interface Problem {
  readonly forests: readonly Forest[];
  readonly rows: readonly Float32Array[];
}

/** Forests of random trees over one binning of up to 255 bins, and rows that also lie on and beyond the cut points. */
function createProblem({ features, trees, depth, rows, seed }: Shape): Problem {
  const random = createRandom(seed);
  const columns = Array.from({ length: features }, () =>
    Float32Array.from({ length: 1 + 2 ** Math.floor(random() * 11) }, random),
  );
  const binning = fitBinning(columns);
  const forests = [1, 2].map(() =>
    createForest(
      binning,
      random() - 0.5,
      Array.from({ length: trees }, () => growRandom(features, depth, random)),
    ),
  );
  return {
    forests,
    rows: columns.map((column, feature) =>
      Float32Array.from({ length: rows }, () => pickProbe(column, binning.edges[feature]!, random)),
    ),
  };
}

function growRandom(features: number, depth: number, random: () => number) {
  const levels = Array.from({ length: depth }, () => Math.floor(random() * features));
  return {
    features: levels,
    thresholds: levels.map(() => Math.floor(random() * 255)),
    values: Float64Array.from({ length: LEAVES }, () => random() - 0.5),
    covers: new Float64Array(LEAVES).fill(1),
  };
}

function pickProbe(column: Float32Array, edges: Float32Array, random: () => number): number {
  const pick = <T>(from: ArrayLike<T>): T => from[Math.floor(random() * from.length)]!;
  const kind = random();
  if (kind < 0.5) return pick(column);
  if (kind < 0.9 && edges.length > 0) return pick(edges);
  return pick([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 1e30, -1e30]);
}

/** By the definition: the digits of a row name its leaf. */
function evaluateByDefinition(forest: Forest, row: readonly number[]): number {
  const bins = row.map((value, feature) => forest.binning.edges[feature]!.filter((edge) => edge < value).length);
  let sum = 0;
  for (let tree = 0; tree < forest.treeCount; tree++) {
    const digits = Array.from({ length: 6 }, (_, level) => {
      const feature = forest.features[tree * 6 + level]!;
      return bins[feature]! > forest.thresholds[tree * 6 + level]! ? '1' : '0';
    });
    sum += forest.leaves[tree * LEAVES + Number.parseInt(digits.join(''), 2)]!;
  }
  return forest.base + sum * forest.leafScale;
}

for (const kernel of KERNELS) {
  test(`createEvaluator() with the ${kernel} kernel evaluates as defined`, () => {
    fc.assert(
      fc.property(shape, (of) => {
        const { forests, rows } = createProblem(of);
        const evaluator = createEvaluator(forests, { kernel, capacity: of.rows });
        assert.equal(evaluator.kernel, kernel);
        rows.forEach((column, feature) => {
          evaluator.values.set(column, feature * evaluator.capacity);
        });
        evaluator.evaluate(of.rows);
        forests.forEach((forest, f) => {
          for (let i = 0; i < of.rows; i++) {
            const expected = evaluateByDefinition(
              forest,
              rows.map((column) => column[i]!),
            );
            assert.equal(evaluator.outputs[f]![i], expected);
          }
        });
      }),
      { numRuns: 25 },
    );
  });
}

test('createEvaluator() evaluates a second call with fewer rows', () => {
  const { forests, rows } = createProblem({ features: 3, trees: 20, depth: 6, rows: 40, seed: 1 });
  for (const kernel of KERNELS) {
    const evaluator = createEvaluator(forests, { kernel, capacity: 40 });
    const run = (count: number): number[] => {
      rows.forEach((column, feature) => {
        evaluator.values.set(column, feature * evaluator.capacity);
      });
      evaluator.evaluate(count);
      return Array.from(evaluator.outputs[1]!.subarray(0, count));
    };
    assert.deepEqual(run(3), run(40).slice(0, 3));
  }
});

test('createEvaluator() refuses no forest, and forests of different binnings', () => {
  const [a, b] = [1, 2].map((seed) => createProblem({ features: 2, trees: 1, depth: 1, rows: 1, seed }).forests[0]!);
  assert.throws(() => createEvaluator([]), /there is no forest/);
  assert.throws(() => createEvaluator([a!, b!]), /must share one binning/);
});

test('truncateForest() keeps the first trees', () => {
  const { forests } = createProblem({ features: 2, trees: 9, depth: 3, rows: 1, seed: 4 });
  const short = truncateForest(forests[0]!, 4);
  assert.equal(short.treeCount, 4);
  assert.deepEqual(short.leaves, forests[0]!.leaves.slice(0, 4 * LEAVES));
});
