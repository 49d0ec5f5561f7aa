import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { type AnswerStatistic, createPredictColumns, METRIC_COLUMNS, type PredictColumns } from '../schema/columns.ts';
import type { Observation } from '../schema/observation.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { trainModel } from '../training/train-model.ts';
import { createPredictor, type SwappablePredictor } from './predictor.ts';

const rows = observePool({ rows: 900, servers: [1, 2], podType: 'decode' });
/** Not rows that the model was trained on, for which its errors are smaller. */
const reported = observePool({ rows: 300, seed: 5, servers: [1, 2], podType: 'decode' });
const model = trainModel('m@1', tabulate(rows));
const STATISTICS: readonly AnswerStatistic[] = ['p10', 'p50', 'mean', 'p90', 'p95', 'p99'];

function fillColumns(inputs: readonly Observation['input'][]): PredictColumns {
  const columns = createPredictColumns(inputs.length);
  columns.count = inputs.length;
  columns.podTypes = ['decode', 'another'];
  columns.source = Buffer.from(inputs.map(({ serverIp }) => serverIp).join(''));
  let start = 0;
  for (const [i, input] of inputs.entries()) {
    for (const name of METRIC_COLUMNS) columns[name][i] = input[name];
    columns.podType[i] = i % 3 === 0 ? 1 : 0;
    columns.serverIpStart[i] = start;
    columns.serverIpLength[i] = input.serverIp.length;
    start += input.serverIp.length;
  }
  return columns;
}

function createObservedPredictor(
  statistic: 'mean' | 'p50' | 'p90' | 'p95' | 'p99',
  reports: number,
): SwappablePredictor {
  const predictor = createPredictor();
  predictor.swap('m', { ...model, statistic });
  const live = predictor.live('m');
  for (const row of reported.slice(0, reports)) {
    const forecast = live.forecast(tabulate([row]), 'decode', Buffer.from(row.input.serverIp));
    live.observe(forecast, 'ttft', { observedMs: row.ttftMs! });
    live.observe(forecast, 'tpot', { observedMs: row.tpotMs! });
  }
  return predictor;
}

for (const [title, reports] of [
  ['before any report', 0],
  ['after reports', 300],
] as const) {
  test(`predictBatch() answers ${title} with each statistic as a model that answers with it`, () => {
    const inputs = Array.from({ length: 9000 }, (_, i) => rows[i % rows.length]!.input);
    const columns = fillColumns(inputs);
    const batch = createObservedPredictor('p50', reports).predictBatch('m', columns, STATISTICS);
    assert.equal(batch.modelVersion, 'm@1');
    assert.equal(batch.predicted.length, STATISTICS.length);
    for (const statistic of ['p50', 'mean', 'p90', 'p95', 'p99'] as const) {
      const expected = { ttftMs: new Float64Array(inputs.length), tpotMs: new Float64Array(inputs.length) };
      createObservedPredictor(statistic, reports).predict('m', columns, expected);
      assert.deepEqual(batch.predicted[STATISTICS.indexOf(statistic)], expected);
    }
  });

  test(`predictBatch() bounds ${title} about eight of ten times by p10 and p90`, () => {
    const judged = observePool({ rows: 1000, seed: 9, servers: [1, 2], podType: 'decode' });
    const columns = fillColumns(judged.map(({ input }) => input));
    columns.podType.fill(0);
    const predictor = createObservedPredictor('p50', reports);
    const [lower, median, upper] = predictor.predictBatch('m', columns, ['p10', 'p50', 'p90']).predicted;
    for (const target of PREDICTION_TARGETS) {
      const [low, middle, high] = [lower!, median!, upper!].map((times) => times[`${target}Ms`]);
      const observed = judged.map((row) => row[`${target}Ms`]!);
      assert.ok(low!.every((ms, i) => ms > 0 && ms <= middle![i]! && middle![i]! <= high![i]!));
      const share = observed.filter((ms, i) => ms >= low![i]! && ms <= high![i]!).length / observed.length;
      assert.ok(share > 0.7 && share < 0.9, `${target}: ${share}`);
    }
  });
}

test('predictBatch() answers an empty batch with empty columns', () => {
  const { predicted } = createPredictor().predictBatch('m', fillColumns([]), ['p50']);
  assert.equal(predicted[0]!.ttftMs.length, 0);
});
