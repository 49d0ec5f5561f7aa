import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/observed-pool.ts';
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
