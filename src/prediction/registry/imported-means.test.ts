import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Statistic } from '../model/calibration.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { decodeModel, encodeModel } from '../model/model-codec.ts';
import { createLiveModel, type LiveModel } from '../online/live-model.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { importTrees, placeImported } from './import-model.ts';

const text = readFileSync(new URL('../formats/fixtures/xgboost-gamma.json', import.meta.url), 'utf8');
const trees = importTrees({ kind: 'XGBoost', text, features: new Map(), transform: 'identity', unit: 'ms' });

function importAs(statistic: Statistic): LatencyModel {
  const placed = placeImported(createPriorModel(), trees, { target: 'ttft', podType: undefined, statistic });
  return decodeModel(encodeModel(placed));
}

/** A request at a server. */
const columns = { ...createPredictColumns(1), count: 1, podTypes: [''], source: Buffer.from('s') };
columns.serverIpLength[0] = 1;
columns.inputTokenLength[0] = 900;
columns.prefixCacheScore[0] = 0.7;
columns.numRequestWaiting[0] = 2;

function predict(live: LiveModel): number {
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  live.predict(columns, predicted);
  return predicted.ttftMs[0]!;
}

const models: [title: string, model: LatencyModel][] = [
  ['imported trees', importAs('mean')],
  ['a prior', { ...createPriorModel(), statistic: 'mean' }],
];
for (const [title, model] of models)
  test(`the mean of ${title} follows the mean of the reported times`, () => {
    const live = createLiveModel(model);
    const reportedMs = 1.2 * live.forecast(columns, '', columns.source).ttft.mixtureMs;
    for (let i = 0; i < 200; i++)
      live.observe(live.forecast(columns, '', columns.source), 'ttft', { observedMs: reportedMs });
    const mean = predict(live);
    assert.ok(Math.abs(mean / reportedMs - 1) < 0.05, `${mean} ms, and ${reportedMs} were reported`);
  });

test('trees that were imported as a mean predict their own value before the first report', () => {
  assert.equal(predict(createLiveModel(importAs('mean'))), predict(createLiveModel(importAs('p50'))));
});
