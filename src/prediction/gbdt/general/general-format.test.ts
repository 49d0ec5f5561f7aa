import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeGeneralForest, encodeGeneralForest } from './general-format.ts';
import { createGeneralForest, MISSING_NAN } from './general-tree.ts';

const forest = createGeneralForest({
  featureCount: 2,
  base: 0.5,
  link: 'exp',
  precision: 'double',
  trees: [
    [
      { feature: 1, threshold: 0.25, left: 1, right: 2, missing: MISSING_NAN, cover: 10 },
      { leaf: -1.5, cover: 4 },
      { leaf: 2, cover: 6 },
    ],
    [{ leaf: 0.125, cover: 10 }],
  ],
});

test('a forest read back is the same in every number', () => {
  assert.deepEqual(decodeGeneralForest(encodeGeneralForest(forest)), forest);
});

const bytes = encodeGeneralForest(forest);
const LEFT_AT = 32 + 4 * 2 + 4 * 4;
const damages: [title: string, file: Uint8Array, message: RegExp][] = [
  ['cut short', bytes.subarray(0, bytes.length - 8), /its length is wrong/],
  ['that is empty', bytes.subarray(0, 8), /it ends too early/],
  ['of an unknown kind', change(4, 9), /its kind is unknown/],
  ['whose node leads to itself', change(LEFT_AT, 0), /node 0 is not well formed/],
  ['whose node leads out of its tree', change(LEFT_AT, 3), /node 0 is not well formed/],
  ['that asks a feature it lacks', change(32 + 4 * 2, 2), /node 0 is not well formed/],
];
function change(at: number, value: number): Uint8Array {
  const changed = Buffer.from(bytes);
  changed.writeInt32LE(value, at);
  return changed;
}
for (const [title, file, message] of damages)
  test(`a forest ${title} is refused`, () => {
    assert.throws(() => decodeGeneralForest(file), message);
  });
