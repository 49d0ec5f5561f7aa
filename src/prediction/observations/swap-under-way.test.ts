import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSink, reportRows } from '../../../test/support/prediction/observation-sink.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { createPriorModel } from '../model/model.ts';
import { QUANTILE_LEVELS } from '../online/intervals/conformal.ts';
import { createLiveModel, type LiveModel } from '../online/live-model.ts';
import { createPredictor, type SwappablePredictor } from '../online/predictor.ts';
import { forecastP90Ms } from '../online/target-predictor.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../schema/columns.ts';
import type { Observation } from '../schema/observation.ts';
import type { ObservationEvent } from '../schema/observation-event.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';

const trees = { ...DEFAULT_TRAINING.trees, trees: 20 };
const FACTOR = 4;
const fast = observePool({ rows: 400 });
const slow = fast.map((row) => ({ ...row, ttftMs: FACTOR * row.ttftMs!, tpotMs: FACTOR * row.tpotMs! }));
const before = trainModel('m@1', tabulate(fast), { ...DEFAULT_TRAINING, trees });
const after = trainModel('m@2', tabulate(slow), { ...DEFAULT_TRAINING, trees });

function fillInput({ input }: Observation) {
  const columns = createPredictColumns(1);
  columns.count = 1;
  columns.source = Buffer.from(input.serverIp);
  columns.podTypes = [input.podType];
  columns.serverIpLength[0] = columns.source.length;
  for (const name of METRIC_COLUMNS) columns[name][0] = input[name];
  return columns;
}

function predict({ predict: fill }: Pick<LiveModel, 'predict'>, row: Observation): [ttft: number, tpot: number] {
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  fill(fillInput(row), predicted);
  return [predicted.ttftMs[0]!, predicted.tpotMs[0]!];
}

function predictServed(predictor: SwappablePredictor, row: Observation): [ttft: number, tpot: number] {
  return predict({ predict: (columns, predicted) => void predictor.predict('m', columns, predicted) }, row);
}

forEachEngine(
  'a report that is learned while a version is swapped is shown as it was forecast before',
  async (store) => {
    const predictor = createPredictor();
    let seen = 0;
    const { sink, answered } = openSink(store, predictor, () => {
      seen += 1;
      // The first 50 rows, with both of their times, are learned before the swap.
      if (seen === 100) predictor.swap('m', after);
    });
    predictor.swap('m', before);
    const rows = slow.slice(0, 200);
    const live = predictor.live('m');
    const promised = rows.flatMap((row) => {
      const { ttft, tpot } = live.forecast(fillInput(row), row.input.podType, Buffer.from(row.input.serverIp));
      return [ttft.medianMs, tpot.medianMs];
    });
    await sink.report(reportRows(rows));
    assert.equal(predictor.live('m').model.id, 'm@2');
    assert.deepEqual(
      answered.map(({ version, predictedMs }) => [version, predictedMs]),
      promised.map((predictedMs) => [1, predictedMs]),
    );
  },
);

forEachEngine(
  'requests that were under way when a version was swapped are compared with the version that learns from them',
  async (store) => {
    const { sink, predictor, answered } = openSink(store);
    predictor.swap('m', before);
    const rows = slow.slice(0, 60);
    await sink.report(
      rows.map(({ input }, i) => ({
        kind: 'dispatched',
        requestId: `r${i}`,
        targetModel: 'm',
        input,
        atMs: 1000 + i,
      })),
    );
    predictor.swap('m', after);
    const untouched = predictServed(predictor, slow[70]!);
    const times = rows.flatMap(({ ttftMs, tpotMs }, i): ObservationEvent[] => [
      { kind: 'first_token', requestId: `r${i}`, ttftMs: ttftMs!, atMs: 2000 },
      { kind: 'finished', requestId: `r${i}`, tpotMs: tpotMs!, outputTokens: 400, atMs: 3000 },
    ]);
    for (let start = 0; start < times.length; start += 20) await sink.report(times.slice(start, start + 20));
    const ratios = predictServed(predictor, slow[70]!).map((ms, i) => ms / untouched[i]!);
    assert.ok(
      ratios.every((ratio) => Math.abs(ratio - 1) < 0.15),
      `${ratios.join(', ')} times what the new version predicts, which was right`,
    );
    const shown = answered.map(({ version, observedMs, predictedMs }) => [version, observedMs > 2 * predictedMs]);
    assert.deepEqual(
      shown,
      Array.from({ length: 120 }, () => [1, true]),
      'the errors that are shown are those of the version that answered',
    );
  },
);

test('requests that were under way at an early refit of the prior are compared with the fitted prior', () => {
  const live = createLiveModel(createPriorModel());
  const rows = observePool({ rows: 60 }).map((row) => ({ ...row, tpotMs: row.tpotMs! / 10 }));
  const forecasts = rows.map((row) =>
    live.forecast(fillInput(row), row.input.podType, Buffer.from(row.input.serverIp)),
  );
  for (const [i, forecast] of forecasts.entries()) live.observe(forecast, 'tpot', { observedMs: rows[i]!.tpotMs });
  const later = observePool({ rows: 40, seed: 2 });
  const errors = later.map((row) => Math.abs(Math.log(predict(live, row)[1] / (row.tpotMs! / 10))));
  const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
  assert.ok(mean < 0.2, `a mean error of ${mean}`);
});

test('answers that were under way when a prior was fitted leave intervals as wide as the times scatter', () => {
  const live = createLiveModel(createPriorModel());
  const rows = observePool({ rows: 310 }).map((row) => ({ ...row, tpotMs: FACTOR * row.tpotMs! }));
  const send = (row: Observation) => live.forecast(fillInput(row), row.input.podType, Buffer.from(row.input.serverIp));
  const underWay = rows.slice(0, 60).map(send);
  for (const [i, row] of rows.slice(60).entries()) {
    live.observe(underWay[i]!, 'tpot', { observedMs: rows[i]!.tpotMs });
    underWay.push(send(row));
  }
  const logs = observePool({ rows: 50, seed: 2 }).map((row) =>
    Math.log(forecastP90Ms(send(row).tpot) / (FACTOR * row.tpotMs!)),
  );
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
  assert.ok(mean < Math.log(3), `the p90 is ${Math.exp(mean)} times the observed time`);
  assert.ok(logs.filter((log) => log >= 0).length >= 40, `${logs.filter((log) => log >= 0).length} of 50 are covered`);
});

test('intervals are judged by what was predicted before the swap, though earlier answers have moved the means since', () => {
  const live = createLiveModel(before);
  const surge = slow.slice(0, 100);
  const [podType] = surge.map(({ input }) => input.podType);
  const forecasts = surge.map((row) => live.forecast(fillInput(row), podType!, Buffer.from(row.input.serverIp)));
  live.replaceModel({ ...before, id: 'm@2' });
  for (const [i, forecast] of forecasts.entries()) live.observe(forecast, 'tpot', { observedMs: surge[i]!.tpotMs! });
  const [coverages] = live.save().slots.map(({ tpot }) => tpot.quantiles.coverages);
  const p90 = coverages![QUANTILE_LEVELS.indexOf(0.9)]!;
  assert.ok(p90 < 0.5, `${p90} of the last answers, all four times as long, stayed below the p90`);
});
