import assert from 'node:assert/strict';
import { test } from 'node:test';
import { binRows, fitBinning } from './binning.ts';
import { decodeForests, encodeForests } from './forest-format.ts';
import { createRandom } from './random.ts';
import { trainForest } from './training/boost.ts';

const random = createRandom(1);
const columns = [0, 1, 2].map(() => Float32Array.from({ length: 300 }, random));
const rows = binRows(fitBinning(columns), columns);
const forests = [0, 1].map((f) => {
  const target = Float64Array.from(columns[f]!, (value) => Math.sin(value * 5));
  return trainForest({ rows, target }, { trees: 12, kernel: 'plain' });
});
const bytes = encodeForests(forests);

function alter(position: number, value: number): Uint8Array {
  const altered = Uint8Array.from(bytes);
  altered[position] = value;
  return altered;
}

test('decodeForests() reads what encodeForests() wrote, with one binning for all', () => {
  const decoded = decodeForests(bytes);
  assert.deepEqual(decoded, forests);
  assert.equal(decoded[0]!.binning, decoded[1]!.binning);
  assert.deepEqual(encodeForests(decoded), bytes);
});

test('decodeForests() refuses other files, later versions, damage and extra bytes', () => {
  assert.throws(() => decodeForests(new Uint8Array(0)), /not a file of forests/);
  assert.throws(() => decodeForests(alter(0, 0)), /not a file of forests/);
  assert.throws(() => decodeForests(alter(8, 2)), /format is version 2, this program reads version 1/);
  assert.throws(() => decodeForests(bytes.subarray(0, bytes.length - 1)), /damaged/);
});

test('decodeForests() notices a change of any byte', () => {
  for (let position = 0; position < bytes.length; position += 13) {
    assert.throws(() => decodeForests(alter(position, bytes[position]! ^ 0x10)), /Cannot read the forests/);
  }
});
