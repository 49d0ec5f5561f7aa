import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listTicks } from './log-ticks.ts';

const valuesOf = (low: number, high: number) => listTicks(low, high).map(({ value }) => value);

test('listTicks() gives 1, 2 and 5 of each decade within the ends, while there is room', () => {
  assert.deepEqual(valuesOf(5.66, 260), [10, 20, 50, 100, 200]);
  assert.deepEqual(valuesOf(0.03, 0.7), [0.05, 0.1, 0.2, 0.5]);
  assert.deepEqual(valuesOf(1, 10), [1, 2, 5, 10]);
});

test('listTicks() gives powers of ten on a longer scale, and every third of them on the longest', () => {
  assert.deepEqual(valuesOf(0.3, 20_000), [1, 10, 100, 1000, 10_000]);
  assert.deepEqual(valuesOf(1e-7, 1e7), [1e-6, 1e-3, 1, 1e3, 1e6]);
});

test('listTicks() places values by their logarithms', () => {
  assert.deepEqual(
    listTicks(10, 1000).map(({ value, share }) => [value, Math.round(share * 1000)]),
    [
      [10, 0],
      [20, 151],
      [50, 349],
      [100, 500],
      [200, 651],
      [500, 849],
      [1000, 1000],
    ],
  );
});
