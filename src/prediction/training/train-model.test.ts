import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { decodeModel, encodeModel } from '../model/model-codec.ts';
import { DEFAULT_TRAINING, trainModel } from './train-model.ts';

test('trainModel() learns a part for each of the 64 pod types with the most rows', () => {
  const rows = observePool({ rows: 70 * 51 }).map((row, i) => {
    const podType = i < 70 * 50 ? `p${i % 70}` : 'p69';
    return { ...row, input: { ...row.input, podType } };
  });
  const model = trainModel('m@1', tabulate(rows), { ...DEFAULT_TRAINING, trees: { trees: 1 } });
  assert.equal(model.slots.size, 64);
  assert.equal(model.slots.keys().next().value, 'p69');
});

test('trainModel() learns a model that can be read again from rows with loads beyond all numbers', () => {
  const rows = observePool({ rows: 600, servers: [1, 2] }).map((row, i) => {
    const input = { ...row.input, kvCacheUsage: 1e200, serverIp: '10.0.0.9' };
    return i % 3 === 0 ? { ...row, input, ttftMs: i % 2 === 0 ? 0.001 : 86_400_000 } : row;
  });
  const model = trainModel('m@1', tabulate(rows));
  const { offsets } = decodeModel(encodeModel(model)).pooled.ttft!;
  assert.deepEqual(offsets, model.pooled.ttft!.offsets);
  for (const offset of offsets.servers.values()) assert.ok(Math.abs(offset) < 60, `an offset of ${offset}`);
});
