import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { createLiveModel } from '../online/live-model.ts';
import { importTrees, placeImported } from '../registry/import-model.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../schema/columns.ts';
import { selectRows } from '../schema/observation-table.ts';
import { trainModel } from '../training/train-model.ts';
import { explainPrediction } from './explain.ts';
import { createPriorModel, findTimeModel } from './model.ts';
import { readRowOffsets } from './server-offsets.ts';
import { createSlotEvaluator, readMedian } from './slot-evaluator.ts';

test('physics terms times the factors of trees and server are the prediction, to the last digits', () => {
  const table = tabulate(observePool({ rows: 400, servers: [1, 3] }));
  const { ttft, tpot } = trainModel('m@1', table).pooled;
  const evaluator = createSlotEvaluator(ttft!, tpot!, 1);
  for (const row of [0, 7, 100]) {
    const single = selectRows(table, [row]);
    const offsetColumns = evaluator.offsetInputs.map((offsets) => readRowOffsets(offsets, single));
    const estimates = evaluator.evaluate(single, offsetColumns);
    const [offset] = readRowOffsets(ttft!.offsets, single);
    const serverIp = single.servers[single.server[0]!]!;
    const { physics, treeFactors, serverFactor } = explainPrediction(ttft!, single, { serverIp, podType: '' });
    const sum = Object.values(physics).reduce((total, term) => total + term, 0);
    const product = Object.values(treeFactors).reduce((total, factor) => total * factor, 1);
    assert.ok(Math.abs((sum * product) / readMedian(estimates.ttft, 0) - 1) < 1e-9);
    assert.equal(serverFactor, Math.exp(offset!));
  }
});

test('where a pod type has a model of its own for one target only, each prediction uses the offsets that its trees take as inputs', () => {
  const prefill = observePool({ rows: 300, servers: [1, 3], podType: 'prefill' }).map((row) => ({
    ...row,
    tpotMs: undefined,
  }));
  const others = observePool({ rows: 300, seed: 2, servers: [2, 5] });
  const model = trainModel('m@1', tabulate([...prefill, ...others]));
  const slot = model.slots.get('prefill')!;
  assert.deepEqual([slot.ttft === undefined, slot.tpot === undefined], [false, true]);
  const live = createLiveModel(model);
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  for (const { input } of [prefill[0]!, prefill[50]!]) {
    const columns = createPredictColumns(1);
    columns.count = 1;
    columns.podTypes.push('prefill');
    for (const name of METRIC_COLUMNS) columns[name][0] = input[name];
    columns.source = Buffer.from(input.serverIp);
    columns.serverIpLength[0] = columns.source.length;
    live.predict(columns, predicted);
    for (const [target, times] of [
      ['ttft', predicted.ttftMs],
      ['tpot', predicted.tpotMs],
    ] as const) {
      const explained = explainPrediction(findTimeModel(model, 'prefill', target), columns, input);
      const sum = Object.values(explained.physics).reduce((total, term) => total + term, 0);
      const factors = Object.values(explained.treeFactors).reduce((total, factor) => total * factor, 1);
      assert.ok(Math.abs((sum * factors * explained.serverFactor) / times[0]! - 1) < 1e-6, target);
    }
  }
});

const files = [
  ['xgboost-squarederror.json', 'XGBoost', 'identity', 'ms'],
  ['xgboost-gamma.json', 'XGBoost', 'identity', 'ms'],
  ['xgboost-log-seconds.json', 'XGBoost', 'log', 's'],
  ['lightgbm-regression.txt', 'LightGBM', 'identity', 'ms'],
  ['lightgbm-log1p.txt', 'LightGBM', 'log1p', 'ms'],
  ['lightgbm-poisson.txt', 'LightGBM', 'identity', 'ms'],
] as const;
for (const [file, kind, transform, unit] of files)
  test(`what imported trees of ${file} (${transform}, ${unit}) are made of is their prediction, to the last digits`, () => {
    const text = readFileSync(new URL(`../formats/fixtures/${file}`, import.meta.url), 'utf8');
    const imported = importTrees({ kind, text, features: new Map(), transform, unit });
    const placement = { target: 'ttft', podType: undefined, statistic: 'p50' } as const;
    const { ttft } = placeImported(createPriorModel(), imported, placement).pooled;
    const evaluator = createSlotEvaluator(ttft!, ttft!, 1);
    const table = tabulate(observePool({ rows: 100 }));
    for (const row of [0, 7, 99]) {
      const single = selectRows(table, [row]);
      const estimates = evaluator.evaluate(single, []);
      const { treeFactors, treeMilliseconds } = explainPrediction(ttft!, single, { serverIp: '', podType: '' });
      const added = Object.values(treeMilliseconds ?? {}).reduce((sum, part) => sum + part, 0);
      const factors = Object.values(treeFactors);
      const explained = added + (factors.length === 0 ? 0 : factors.reduce((product, factor) => product * factor, 1));
      assert.ok(Math.abs(explained / readMedian(estimates.ttft, 0) - 1) < 1e-9);
    }
  });
