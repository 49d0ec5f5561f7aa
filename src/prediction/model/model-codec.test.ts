import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/observed-pool.ts';
import { trainModel } from '../training/train-model.ts';
import type { LatencyModel } from './model.ts';
import { decodeModel, encodeModel } from './model-codec.ts';

const model = trainModel('m@1', tabulate(observePool({ rows: 300 })));

/** The file as a program of that format would have written it. */
function writeAs(format: number, written: LatencyModel): Uint8Array {
  const content = Buffer.from(encodeModel(written).subarray(0, -32));
  content.writeUInt32LE(format, 8);
  return Buffer.concat([content, createHash('sha256').update(content).digest()]);
}

test('decodeModel() gives back what encodeModel() was given', () => {
  const decoded = decodeModel(encodeModel(model)).whole.ttft!;
  assert.equal(decoded.treeBaseMs, model.whole.ttft!.treeBaseMs);
  assert.ok(decoded.treeBaseMs > 0);
  assert.deepEqual(decoded.forest, model.whole.ttft!.forest);
});

test('decodeModel() reads a file of format 1, whose trees correct physics itself', () => {
  const { ttft, tpot } = model.whole;
  const former = { ...model, whole: { ttft: { ...ttft!, treeBaseMs: 0 }, tpot: tpot! } };
  const decoded = decodeModel(writeAs(1, former)).whole.ttft!;
  assert.equal(decoded.treeBaseMs, 0);
  assert.deepEqual(decoded.forest, ttft!.forest);
});

test('decodeModel() refuses the file of a later program by its format', () => {
  assert.throws(() => decodeModel(writeAs(3, model)), /its format is 3, this program reads 1 to 2/);
});
