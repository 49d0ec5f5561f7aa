import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { binColumn, binRows, fitBinning } from './binning.ts';
import { createKeys, decodeKeys, sortKeys } from './float-keys.ts';
import { createRandom } from './random.ts';

const value = fc.oneof(
  fc.float(),
  fc.integer({ min: -3, max: 3 }),
  fc.constantFrom(-0, Number.NaN, Number.POSITIVE_INFINITY),
);

test('fitBinning() gives every value a bin of its own while there are enough', () => {
  const column = Float32Array.from([5, 1, 1, 3, 5, 9]);
  const { bins, binning } = binRows(fitBinning([column]), [column]);
  assert.deepEqual(Array.from(binning.edges[0]!), [2, 4, 7]);
  assert.deepEqual(Array.from(bins), [2, 0, 0, 1, 2, 3]);
});

test('fitBinning() keeps neighbouring floats, and huge ones, apart', () => {
  const next = new Float32Array(new Uint32Array([0x3f80_0001]).buffer)[0]!;
  for (const pair of [
    [1, next],
    [-3e38, 3e38],
    [3e38, Number.POSITIVE_INFINITY],
  ]) {
    const column = Float32Array.from(pair);
    assert.deepEqual(Array.from(binRows(fitBinning([column]), [column]).bins), [0, 1], pair.join(' and '));
  }
});

test('fitBinning() fills bins evenly, and does not spend them on one frequent value', () => {
  const random = createRandom(3);
  const column = Float32Array.from({ length: 10_000 }, () => (random() < 0.9 ? 0 : random()));
  const { bins, binning } = binRows(fitBinning([column]), [column]);
  assert.equal(binning.edges[0]!.length, 254);
  const counts = new Uint32Array(255);
  for (const bin of bins) counts[bin]! += 1;
  assert.ok(counts[0]! > 8000);
  assert.ok(Math.max(...counts.subarray(1)) < 15);
});

test('fitBinning() of no rows, or of NaN alone, is one bin', () => {
  for (const column of [new Float32Array(0), new Float32Array(4).fill(Number.NaN)]) {
    assert.equal(fitBinning([column]).edges[0]!.length, 0);
  }
});

test('binRows() by the kernel equals the binary search', () => {
  fc.assert(
    fc.property(fc.array(value, { maxLength: 400 }), fc.integer({ min: 2, max: 255 }), (values, maxBins) => {
      const column = Float32Array.from(values);
      const binning = fitBinning([column], { maxBins });
      assert.ok(binning.edges[0]!.length < maxBins);
      const expected = new Uint8Array(column.length);
      binColumn(binning.edges[0]!, column, expected);
      assert.deepEqual(binRows(binning, [column]).bins, expected);
    }),
  );
});

test('binRows() takes columns longer than a piece, and refuses columns that it was not fitted for', () => {
  const column = Float32Array.from({ length: 20_000 }, (_, i) => i % 7);
  const { bins, binning } = binRows(fitBinning([column]), [column]);
  assert.ok(bins.every((bin, i) => bin === i % 7));
  assert.throws(() => binRows(binning, [column, column]), /expected 1 columns, got 2/);
  const both = { edges: [binning.edges[0]!, binning.edges[0]!] };
  assert.throws(() => binRows(both, [column, column.subarray(1)]), /differ in length/);
});

test('fitBinning() refuses an impossible number of bins', () => {
  for (const maxBins of [1, 256, 2.5]) assert.throws(() => fitBinning([], { maxBins }), /maxBins must be 2 … 255/);
});

test('sortKeys() sorts floats as numbers', () => {
  fc.assert(
    fc.property(fc.array(fc.float({ noNaN: true })), (values) => {
      const sorted = Float32Array.from(values).sort();
      assert.deepEqual(decodeKeys(sortKeys(createKeys(values))), sorted);
    }),
  );
});
