import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { binRows, fitBinning } from './binning.ts';
import { createEvaluator } from './evaluate.ts';
import { createRandom } from './random.ts';
import { explainRow } from './shap.ts';
import { trainForest } from './training/boost.ts';
import type { Forest } from './tree.ts';

const problem = fc
  .record({ features: fc.integer({ min: 1, max: 4 }), trees: fc.integer({ min: 1, max: 5 }), seed: fc.nat() })
  .map(({ features, trees, seed }) => {
    const random = createRandom(seed);
    const columns = Array.from({ length: features }, () =>
      Float32Array.from({ length: 80 }, () => Math.floor(random() * 6)),
    );
    const target = Float64Array.from(
      { length: 80 },
      (_, i) => columns[0]![i]! * random() + (columns.at(-1)![i]! > 2 ? 3 : 0),
    );
    const forest = trainForest(
      { rows: binRows(fitBinning(columns), columns), target },
      { trees, depth: 1 + (seed % 6) },
    );
    return { forest, row: Array.from(columns, () => Math.floor(random() * 6)) };
  });

function predict(forest: Forest, row: readonly number[]): number {
  const evaluator = createEvaluator([forest], { capacity: 1 });
  row.forEach((value, feature) => {
    evaluator.values[feature * evaluator.capacity] = value;
  });
  evaluator.evaluate(1);
  return evaluator.outputs[0]![0]!;
}

/** The worth of a coalition for the whole forest, by the rows of the leaves: those that agree with every known digit. */
function worthOf(forest: Forest, row: readonly number[], known: ReadonlySet<number>): number {
  let worth = forest.base;
  for (let tree = 0; tree < forest.treeCount; tree++) {
    const walk = (level: number, prefix: number): number => {
      if (level === 6) return forest.leaves[tree * 64 + prefix]! * forest.leafScale;
      const feature = forest.features[tree * 6 + level]!;
      const threshold = forest.thresholds[tree * 6 + level]!;
      const cut = threshold === 255 ? Number.POSITIVE_INFINITY : forest.binning.edges[feature]![threshold]!;
      const digit = row[feature]! > cut ? 1 : 0;
      if (known.has(feature) || cut === Number.POSITIVE_INFINITY) return walk(level + 1, 2 * prefix + digit);
      const cover = (from: number): number => {
        const width = 1 << (5 - level);
        return forest.covers.slice(tree * 64 + from * width, tree * 64 + (from + 1) * width).reduce((a, b) => a + b, 0);
      };
      const [low, high] = [cover(2 * prefix), cover(2 * prefix + 1)];
      const share = low + high > 0 ? high / (low + high) : 0.5;
      return share * walk(level + 1, 2 * prefix + 1) + (1 - share) * walk(level + 1, 2 * prefix);
    };
    worth += walk(0, 0);
  }
  return worth;
}

function listOrders(items: readonly number[]): number[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item) => listOrders(items.filter((other) => other !== item)).map((rest) => [item, ...rest]));
}

test('explainRow() gives contributions that sum to prediction - expectation', () => {
  fc.assert(
    fc.property(problem, ({ forest, row }) => {
      const { expectation, contributions } = explainRow(forest, row);
      const sum = contributions.reduce((total, value) => total + value, expectation);
      assert.ok(Math.abs(sum - predict(forest, row)) < 1e-9);
    }),
    { numRuns: 50 },
  );
});

test('explainRow() gives the Shapley values, averaged over every order of the features', () => {
  fc.assert(
    fc.property(problem, ({ forest, row }) => {
      const { expectation, contributions } = explainRow(forest, row);
      const orders = listOrders(row.map((_, feature) => feature));
      const expected = new Float64Array(row.length);
      for (const order of orders) {
        const known = new Set<number>();
        for (const feature of order) {
          const before = worthOf(forest, row, known);
          known.add(feature);
          expected[feature]! += (worthOf(forest, row, known) - before) / orders.length;
        }
      }
      assert.ok(Math.abs(expectation - worthOf(forest, row, new Set())) < 1e-9);
      expected.forEach((value, feature) => {
        assert.ok(Math.abs(value - contributions[feature]!) < 1e-9, `feature ${feature}`);
      });
    }),
    { numRuns: 40 },
  );
});
