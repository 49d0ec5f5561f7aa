import assert from 'node:assert/strict';
import { test } from 'node:test';
import { input } from '../../../test/support/prediction/observation-sink.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { createPriorModel } from '../model/model.ts';
import { createLiveModel, type LiveModel } from '../online/live-model.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../schema/columns.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { trainModel } from '../training/train-model.ts';
import { judgeInReport } from './report-forecast.ts';

function forecast(live: LiveModel) {
  const columns = createPredictColumns(1);
  columns.count = 1;
  for (const name of METRIC_COLUMNS) columns[name][0] = input[name];
  return live.forecast(columns, input.podType, Buffer.from(input.serverIp));
}

test('a row of a report is compared with the forecast from before the report', () => {
  const live = createLiveModel(trainModel('m@1', tabulate(observePool({ rows: 100 }))));
  const before = forecast(live);
  for (let i = 0; i < 40; i++) live.observe(before, 'ttft', { observedMs: 5000 });
  const late = forecast(live);
  const judged = judgeInReport(before, late);
  assert.equal(judged.ttft.mixtureMs, before.ttft.mixtureMs);
  assert.equal(judged.ttft.interval.reportedMeanwhile, 40);
  assert.equal(judged.ttft.expertLogs, late.ttft.expertLogs);
});

test('a row whose model was replaced while its report is learned is shown with its earlier forecast', () => {
  const live = createLiveModel(createPriorModel());
  const before = forecast(live);
  for (let i = 0; i < 4; i++) live.observe(before, 'ttft', { observedMs: 1 });
  const refitted = forecast(live);
  assert.notEqual(refitted.swaps, before.swaps, 'the prior was fitted');
  live.replaceModel({ ...createPriorModel(), id: 'm@2' });
  for (const late of [refitted, forecast(live)]) {
    const judged = judgeInReport(before, late);
    assert.equal(judged.swaps, before.swaps, 'so that it is forecast again before it is learned');
    assert.equal(judged.modelId, before.modelId);
    for (const target of PREDICTION_TARGETS) {
      const { interval, ...shown } = judged[target];
      const { interval: promised, ...expected } = before[target];
      assert.deepEqual(shown, expected);
      assert.deepEqual(interval.quantiles, promised.quantiles);
    }
    assert.equal(judged.ttft.interval.reportedMeanwhile, 4);
  }
});
