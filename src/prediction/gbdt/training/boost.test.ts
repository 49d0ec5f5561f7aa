import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { binRows, fitBinning } from '../binning.ts';
import { createEvaluator } from '../evaluate.ts';
import { createRandom } from '../random.ts';
import { evaluateReference, trainReference } from '../reference.ts';
import type { Forest } from '../tree.ts';
import { type BoostOptions, trainForest } from './boost.ts';

const KERNELS = ['plain', 'wasm'] as const;

/** Columns with few distinct values, so that every one of them has a bin of its own. */
const table = fc
  .record({ rows: fc.integer({ min: 4, max: 60 }), features: fc.integer({ min: 1, max: 4 }), seed: fc.nat() })
  .map(({ rows, features, seed }) => {
    const random = createRandom(seed);
    return {
      columns: Array.from({ length: features }, () =>
        Float32Array.from({ length: rows }, () => Math.floor(random() * 12)),
      ),
      target: Float64Array.from({ length: rows }, () => random() * 4 - 2),
      weights: Float64Array.from({ length: rows }, () => 1 + Math.floor(random() * 4)),
    };
  });

function predict(forest: Forest, columns: readonly Float32Array[]): Float64Array {
  const rowCount = columns[0]!.length;
  const evaluator = createEvaluator([forest], { capacity: rowCount });
  columns.forEach((column, feature) => {
    evaluator.values.set(column, feature * evaluator.capacity);
  });
  evaluator.evaluate(rowCount);
  return evaluator.outputs[0]!.slice(0, rowCount);
}

/** sin(6a) + bc on 1,000 rows, with a useless fourth column. */
function createProblem(rowCount = 1000) {
  const random = createRandom(7);
  const columns = Array.from({ length: 4 }, () => Float32Array.from({ length: rowCount }, random));
  const [a, b, c] = columns as [Float32Array, Float32Array, Float32Array];
  const target = Float64Array.from(a, (value, i) => Math.sin(6 * value) + b[i]! * c[i]!);
  return { columns, target };
}

function train(columns: readonly Float32Array[], target: Float64Array, options: Partial<BoostOptions>): Forest {
  return trainForest({ rows: binRows(fitBinning(columns), columns), target }, options);
}

test('trainForest() predicts what the reference predicts', () => {
  fc.assert(
    fc.property(
      table,
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 6 }),
      ({ columns, target }, depth, child) => {
        const options = { trees: 4, depth, learningRate: 0.5, l2: 1, minChildWeight: child };
        const reference = trainReference(columns, target, new Float64Array(target.length).fill(1), options);
        const predicted = predict(train(columns, target, options), columns);
        predicted.forEach((value, i) => {
          const expected = evaluateReference(
            reference,
            columns.map((column) => column[i]!),
          );
          assert.ok(Math.abs(value - expected) < 1e-3, `row ${i}: ${value}, reference ${expected}`);
        });
      },
    ),
    { numRuns: 60 },
  );
});

test('trainForest() counts a row of weight 3 as three rows', () => {
  fc.assert(
    fc.property(table, ({ columns, target, weights }) => {
      const options = { trees: 4, depth: 3, learningRate: 0.5, l2: 1, minChildWeight: 0 };
      const reference = trainReference(columns, target, weights, options);
      const forest = trainForest({ rows: binRows(fitBinning(columns), columns), target, weights }, options);
      predict(forest, columns).forEach((value, i) => {
        const expected = evaluateReference(
          reference,
          columns.map((column) => column[i]!),
        );
        assert.ok(Math.abs(value - expected) < 0.1, `row ${i}: ${value}, reference ${expected}`);
      });
    }),
    { numRuns: 30 },
  );
});

for (const kernel of KERNELS) {
  test(`trainForest() with the ${kernel} kernel learns a function and gives the same forest for the same seed`, () => {
    const { columns, target } = createProblem();
    const options = { trees: 100, rowShare: 0.8, featureShare: 0.8, seed: 3, kernel };
    const forest = train(columns, target, options);
    const error = predict(forest, columns).reduce((sum, value, i) => sum + (value - target[i]!) ** 2, 0);
    assert.ok(Math.sqrt(error / target.length) < 0.05);
    assert.deepEqual(train(columns, target, options), forest);
    assert.notDeepEqual(train(columns, target, { ...options, seed: 4 }).features, forest.features);
  });
}

test('trainForest() gives the same forest with either kernel', () => {
  fc.assert(
    fc.property(table, fc.integer({ min: 1, max: 6 }), ({ columns, target, weights }, depth) => {
      const training = { rows: binRows(fitBinning(columns), columns), target, weights };
      const [plain, wasm] = KERNELS.map((kernel) => trainForest(training, { trees: 5, depth, kernel }));
      assert.deepEqual(wasm, plain);
    }),
    { numRuns: 60 },
  );
});

test('trainForest() stops early and keeps the best count of trees', () => {
  const { columns, target } = createProblem(400);
  const random = createRandom(5);
  const noisy = target.map((value) => value + 4 * (random() - 0.5));
  const binning = fitBinning(columns);
  const half = (from: number): Float32Array[] => columns.map((column) => column.slice(from, from + 200));
  const training = { rows: binRows(binning, half(0)), target: noisy.slice(0, 200) };
  const validation = { rows: binRows(binning, half(200)), target: noisy.slice(200) };
  const forest = trainForest(training, { trees: 300 }, { validation, patience: 10 });
  assert.ok(forest.treeCount < 300 && forest.treeCount > 0, `${forest.treeCount} trees`);
});

const MONOTONE_CASES = [
  [1, 0, 0],
  [-1, 0, 0],
  [1, -1, 0],
  [1, 1, 1],
];
for (const monotone of MONOTONE_CASES) {
  test(`trainForest() honours the constraints ${monotone.join(', ')} on every row`, () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const random = createRandom(seed);
        const columns = monotone.map(() => Float32Array.from({ length: 200 }, () => Math.floor(random() * 8)));
        const target = Float64Array.from({ length: 200 }, () => random());
        const forest = train(columns, target, { trees: 20, minChildWeight: 0, monotone });
        const probes = Array.from({ length: 20 }, () => monotone.map(() => Math.floor(random() * 8)));
        monotone.forEach((sign, feature) => {
          for (const probe of probes) {
            const grid = monotone.map((_, f) =>
              Float32Array.from({ length: 9 }, (_x, i) => (f === feature ? i : probe[f]!)),
            );
            const predicted = predict(forest, grid);
            for (let i = 1; i < 9; i++) assert.ok(sign * (predicted[i]! - predicted[i - 1]!) >= 0);
          }
        });
      }),
      { numRuns: 20 },
    );
  });
}

test('trainForest() with the quantile loss leaves the requested share of rows below', () => {
  const random = createRandom(9);
  const columns = [Float32Array.from({ length: 4000 }, random)];
  const target = Float64Array.from(columns[0]!, (value) => value * (1 + random()));
  for (const level of [0.1, 0.5, 0.9]) {
    const forest = train(columns, target, { trees: 60, learningRate: 0.1, loss: { kind: 'quantile', level } });
    const below = predict(forest, columns).filter((value, i) => target[i]! <= value).length / target.length;
    assert.ok(Math.abs(below - level) < 0.03, `level ${level}: ${below}`);
  }
});

test('trainForest() with the absolute or the Huber loss is not moved by an outlier', () => {
  const columns = [Float32Array.from({ length: 100 }, (_, i) => i % 2)];
  const target = Float64Array.from({ length: 100 }, (_, i) => (i === 0 ? 1e6 : i % 2));
  for (const loss of [{ kind: 'absolute' }, { kind: 'huber', delta: 0.5 }] as const) {
    const predicted = predict(train(columns, target, { trees: 50, l2: 0, loss }), columns);
    assert.ok(
      Math.abs(predicted[2]!) < 0.05 && Math.abs(predicted[1]! - 1) < 0.05,
      `${loss.kind}: ${predicted.slice(1, 3).join()}`,
    );
  }
});

test('trainForest() with clipped residuals splits where errors are large, with signs where most are on one side', () => {
  // By the first column three of five small errors are on one side; by the second, one row in ten may be far off.
  const rowCount = 1000;
  const columns = [0, 1].map(() => new Float32Array(rowCount));
  const target = new Float64Array(rowCount);
  for (let i = 0; i < rowCount; i++) {
    columns[0]![i] = i % 2;
    columns[1]![i] = Math.floor(i / 10) % 10 === 0 ? 1 : 0;
    const above = i % 2 === 0 ? i % 5 < 3 : i % 5 < 2;
    target[i] = above ? 0.01 + (columns[1]![i]! > 0 ? 5 : 0) : -0.01;
  }
  const options = { trees: 1, depth: 1, loss: { kind: 'absolute' }, base: 0 } as const;
  assert.equal(train(columns, target, options).features.at(-1), 0);
  assert.equal(train(columns, target, { ...options, splitClip: 1000 }).features.at(-1), 1);
  // The median is 0, so signs are used again.
  const exact = target.map((value, i) => (i % 10 < 6 ? 0 : value));
  const [clipped, plain] = [{ ...options, splitClip: 2 }, options].map((of) =>
    predict(train(columns, exact, of), columns),
  );
  assert.deepEqual(clipped, plain);
});

test('trainForest() gives the constant when there is nothing to split', () => {
  const forest = train([new Float32Array(5)], Float64Array.of(1, 2, 3, 4, 5), {});
  assert.equal(forest.treeCount, 0);
  assert.equal(predict(forest, [new Float32Array(1)])[0], 3);
});

test('trainForest() refuses impossible options', () => {
  const { columns, target } = createProblem(10);
  assert.throws(() => train(columns, target, { depth: 7 }), /depth must be 1 … 6, got 7/);
  assert.throws(() => train(columns, target, { splitClip: 0 }), /splitClip must be/);
  const wide = Array.from({ length: 256 }, () => new Float32Array(10));
  assert.throws(() => train(wide, target, {}), /features must be 255 at most, got 256/);
  assert.throws(() => train(columns, target.with(0, Number.NaN), {}), /every target must be finite/);
});
