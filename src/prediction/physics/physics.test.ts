import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { addEquation, createNormalEquations, solveNonNegative } from './non-negative-least-squares.ts';
import { createPriorPhysics, evaluatePhysics, fitPhysics, type PhysicsModel } from './physics.ts';
import { countTerms, createTypicalLoad, type LoadColumns, type PhysicsTarget } from './terms.ts';

const PREDICTION_TARGETS: readonly PhysicsTarget[] = ['ttft', 'tpot'];
const typical = createTypicalLoad();

function predict(model: PhysicsModel, load: LoadColumns): Float64Array {
  const predicted = new Float64Array(load.inputTokenLength.length);
  evaluatePhysics(model, load, predicted.length, predicted);
  return predicted;
}

function takeRows(load: LoadColumns, count: number): LoadColumns {
  const take = (column: ArrayLike<number>): number[] => Array.from(column).slice(0, count);
  return {
    inputTokenLength: take(load.inputTokenLength),
    prefixCacheScore: take(load.prefixCacheScore),
    numRequestWaiting: take(load.numRequestWaiting),
    numRequestRunning: take(load.numRequestRunning),
    kvCacheUsage: take(load.kvCacheUsage),
    inflightTokens: take(load.inflightTokens),
  };
}

function solve(rows: readonly (readonly number[])[], right: readonly number[]): Float64Array {
  const equations = createNormalEquations(rows[0]!.length);
  rows.forEach((row, i) => {
    addEquation(equations, row, { value: right[i]!, weight: 1 });
  });
  return solveNonNegative(equations);
}

const small = fc.double({ min: -10, max: 10, noNaN: true });
const problem = fc
  .record({ columns: fc.integer({ min: 1, max: 6 }), rows: fc.integer({ min: 6, max: 20 }) })
  .chain(({ columns, rows }) =>
    fc.record({
      matrix: fc.array(fc.array(small, { minLength: columns, maxLength: columns }), {
        minLength: rows,
        maxLength: rows,
      }),
      right: fc.array(small, { minLength: rows, maxLength: rows }),
    }),
  );

test('solveNonNegative() meets the Karush-Kuhn-Tucker conditions', () => {
  fc.assert(
    fc.property(problem, ({ matrix, right }) => {
      const solution = solve(matrix, right);
      const errors = matrix.map((row, i) => right[i]! - row.reduce((sum, value, j) => sum + value * solution[j]!, 0));
      solution.forEach((value, column) => {
        assert.ok(value >= 0);
        const slope = matrix.reduce((sum, row, i) => sum + row[column]! * errors[i]!, 0);
        const size = Math.hypot(...matrix.map((row) => row[column]!)) * Math.hypot(...right) + 1e-9;
        assert.ok(slope / size < 1e-4, `more of column ${column} would lower the error`);
        if (value > 1e-6) assert.ok(Math.abs(slope / size) < 1e-4, `column ${column} is not at its best`);
      });
    }),
    { numRuns: 300 },
  );
});

test('solveNonNegative() gives 0 to a column of zeros and survives repeated columns', () => {
  const solution = solve([[1, 0, 1], [2, 0, 2], [3, 0, 3]], [2, 4, 6]); // biome-ignore format: a matrix
  assert.equal(solution[1], 0);
  assert.ok(Math.abs(solution[0]! + solution[2]! - 2) < 1e-9);
});

for (const target of PREDICTION_TARGETS) {
  test(`fitPhysics() for ${target} is the prior when there is no observation`, () => {
    const prior = predict(createPriorPhysics(target), typical);
    const fitted = predict(fitPhysics(target, typical, []), typical);
    fitted.forEach((value, i) => {
      assert.ok(Math.abs(value / prior[i]! - 1) < 1e-6);
    });
    assert.ok(prior.every((value) => value > 1 && value < 60_000));
  });

  test(`fitPhysics() for ${target} finds the coefficients that made the data`, () => {
    const truth: PhysicsModel = {
      target,
      coefficients: Float64Array.from(
        { length: countTerms(target) },
        (_, term) => createPriorPhysics(target).coefficients[term]! * (term % 2 === 0 ? 3 : 0.2),
      ),
      floorMs: 0.01,
    };
    const observed = predict(truth, typical);
    const fitted = predict(fitPhysics(target, typical, observed, { priorWeight: 0.01 }), typical);
    fitted.forEach((value, i) => {
      assert.ok(Math.abs(Math.log(value / observed[i]!)) < 0.02, `row ${i}: ${value}, truth ${observed[i]}`);
    });
  });

  test(`fitPhysics() for ${target} follows a faster server after two observations`, () => {
    const fast = predict(createPriorPhysics(target), typical).map((value) => value / 5);
    const fitted = predict(fitPhysics(target, takeRows(typical, 2), fast.slice(0, 2)), typical);
    const prior = predict(createPriorPhysics(target), typical);
    fitted.forEach((value, i) => {
      assert.ok(value < prior[i]! && value > fast[i]! * 0.5);
    });
  });

  test(`fitPhysics() for ${target} never falls as load rises, whatever was observed`, () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1e5, noNaN: true }), { maxLength: 60 }), (observed) => {
        const model = fitPhysics(target, typical, observed);
        const before = predict(model, typical);
        const rising = [
          'inputTokenLength',
          'numRequestWaiting',
          'numRequestRunning',
          'kvCacheUsage',
          'inflightTokens',
        ] as const;
        for (const name of rising) {
          const after = predict(model, { ...typical, [name]: Array.from(typical[name], (value) => value * 2 + 1) });
          after.forEach((value, i) => {
            assert.ok(value >= before[i]! && Number.isFinite(value) && value > 0);
          });
        }
      }),
      { numRuns: 40 },
    );
  });
}

test('fitPhysics() leaves out rows without a time, and is not moved far by a stalled request', () => {
  const observed = predict(createPriorPhysics('ttft'), typical);
  const clean = predict(fitPhysics('ttft', typical, observed), typical);
  const dirty = observed.with(3, 1e7).with(4, 0).with(5, Number.NaN);
  predict(fitPhysics('ttft', typical, dirty), typical).forEach((value, i) => {
    assert.ok(Math.abs(Math.log(value / clean[i]!)) < 0.3);
  });
});

test('fitPhysics() is not distorted by an impossible row: two billion tokens in 3 ms', () => {
  const observed = predict(createPriorPhysics('ttft'), typical);
  const clean = predict(fitPhysics('ttft', typical, observed), typical);
  const withMistake: LoadColumns = {
    inputTokenLength: [...Array.from(typical.inputTokenLength), 2_000_000_000],
    prefixCacheScore: [...Array.from(typical.prefixCacheScore), 0],
    numRequestWaiting: [...Array.from(typical.numRequestWaiting), 0],
    numRequestRunning: [...Array.from(typical.numRequestRunning), 0],
    kvCacheUsage: [...Array.from(typical.kvCacheUsage), 0],
    inflightTokens: [...Array.from(typical.inflightTokens), 0],
  };
  const bent = predict(fitPhysics('ttft', withMistake, [...observed, 3]), typical);
  bent.forEach((value, row) => {
    assert.ok(Math.abs(Math.log(value / clean[row]!)) < 0.05, `${value} instead of ${clean[row]}`);
  });
});

test('fitPhysics() for tpot does not expect longer steps from a longer queue, once prompts fill the step', () => {
  // A step has room for 8,192 prompt tokens and a batch of 8: its duration has a ceiling, whatever waits.
  const stepMs = (running: number, inflight: number) =>
    12 + 0.4 * Math.min(8, running) + 20 * Math.min(1, inflight / 8192);
  const queueing = (waiting: number): LoadColumns => {
    const steps = Array.from({ length: 200 }, (_, i) => i);
    return {
      inputTokenLength: steps.map((i) => 100 + 200 * (i % 7)),
      prefixCacheScore: steps.map(() => 0),
      numRequestWaiting: steps.map((i) => (i % 5 < 2 ? 0 : waiting)),
      numRequestRunning: steps.map((i) => 1 + (i % 12) + (i % 5 < 2 ? 0 : waiting)),
      kvCacheUsage: steps.map((i) => 0.01 * (i % 12)),
      inflightTokens: steps.map((i) => (i % 5 < 2 ? 900 * (i % 3) : 4000 * waiting)),
    };
  };
  const observe = ({ numRequestRunning, inflightTokens }: LoadColumns) =>
    Array.from(numRequestRunning, (running, i) => stepMs(running, inflightTokens[i]!));
  const seen = queueing(2);
  const model = fitPhysics('tpot', seen, observe(seen));
  const longer = queueing(25);
  const predicted = predict(model, longer);
  observe(longer).forEach((value, i) => {
    if (longer.numRequestWaiting[i] === 0) return;
    const factor = predicted[i]! / value;
    // Terms that only rise in proportion would say six times as much.
    assert.ok(factor > 0.7 && factor < 2, `row ${i}: ${predicted[i]}, truth ${value}`);
  });
});
