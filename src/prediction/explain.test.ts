import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../test/support/observed-pool.ts';
import { explainPrediction } from './explain.ts';
import { selectRows } from './observation-table.ts';
import { createSlotEvaluator } from './slot-evaluator.ts';
import { trainModel } from './train-model.ts';

test('physics terms times the factors of the trees are the prediction', () => {
  const table = tabulate(observePool({ rows: 400 }));
  const { ttft, tpot } = trainModel('m@1', table).whole;
  const evaluator = createSlotEvaluator(ttft!, tpot!, 1);
  for (const row of [0, 7, 100]) {
    const single = selectRows(table, [row]);
    evaluator.evaluate(single);
    const { physics, treeFactors } = explainPrediction('ttft', ttft!, single);
    const sum = Object.values(physics).reduce((total, term) => total + term, 0);
    const product = Object.values(treeFactors).reduce((total, factor) => total * factor, 1);
    // Factors next to 1 are left out of the explanation.
    assert.ok(Math.abs((sum * product) / evaluator.ttft.medianMs[0]! - 1) < 0.03);
  }
});
