import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { encodeForests } from '../gbdt/forest-format.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { trainModel } from '../training/train-model.ts';
import { FEATURE_NAMES, HISTORY_FEATURES } from './features.ts';
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
  const decoded = decodeModel(encodeModel(model)).pooled.ttft!;
  assert.equal(decoded.treeBaseMs, model.pooled.ttft!.treeBaseMs);
  assert.ok(decoded.treeBaseMs > 0);
  assert.deepEqual(decoded.forest, model.pooled.ttft!.forest);
});

test('decodeModel() reads a file of format 1, whose trees correct physics itself', () => {
  const { ttft, tpot } = model.pooled;
  const former = { ...model, pooled: { ttft: { ...ttft!, treeBaseMs: 0 }, tpot: tpot! } };
  const decoded = decodeModel(writeAs(1, former)).pooled.ttft!;
  assert.equal(decoded.treeBaseMs, 0);
  assert.deepEqual(decoded.forest, ttft!.forest);
});

/** The file as a program without the history of servers would have written it. */
function writeWithoutHistory(written: LatencyModel): Uint8Array {
  const kept = FEATURE_NAMES.filter((_, feature) => !HISTORY_FEATURES.includes(feature));
  const forests = PREDICTION_TARGETS.map((target) => written.pooled[target]!.forest!).map((forest) => ({
    ...forest,
    features: forest.features.map((feature) => kept.indexOf(FEATURE_NAMES[feature]!)),
  }));
  const { edges } = forests[0]!.binning;
  const binning = { edges: edges.filter((_, feature) => !HISTORY_FEATURES.includes(feature)) };
  const bytes = encodeForests(forests.map((forest) => ({ ...forest, binning })));
  const file = Buffer.from(encodeModel(written));
  const header = JSON.parse(file.toString('utf8', 16, 16 + file.readUInt32LE(12)));
  header.features = kept;
  header.slots[0].forestBytes = bytes.length;
  const text = Buffer.from(JSON.stringify(header));
  const start = Buffer.from(file.subarray(0, 16));
  start.writeUInt32LE(text.length, 12);
  const content = Buffer.concat([start, text, bytes]);
  return Buffer.concat([content, createHash('sha256').update(content).digest()]);
}

test('decodeModel() reads a model that was learned from fewer features', () => {
  const decoded = decodeModel(writeWithoutHistory(model));
  assert.deepEqual(decoded.pooled.ttft!.forest, model.pooled.ttft!.forest);
  assert.equal(decoded.pooled.ttft!.forest!.binning, decoded.pooled.tpot!.forest!.binning);
});

test('decodeModel() refuses the file of a later program by its format', () => {
  assert.throws(() => decodeModel(writeAs(3, model)), /its format is 3, this program reads 1 to 2/);
});
