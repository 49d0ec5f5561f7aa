import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../../test/support/prediction/observed-pool.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../../schema/columns.ts';
import { trainModel } from '../../training/train-model.ts';
import { createLiveModel, type LiveModel } from '../live-model.ts';
import { forecastP90Ms } from '../target-predictor.ts';
import { createStalledQueueBounds, fillStalledQueueBounds } from './stalled-queue-bounds.ts';

interface History {
  readonly oldestMs: number;
  readonly gapMs: number;
  readonly waiting: number;
  /** How old the newest report is. */
  readonly reportAgeMs?: number;
}

/** The least of a prediction and of a quantile for a server with this history, and without any. */
function listLeast({ oldestMs, gapMs, waiting, reportAgeMs = 0 }: History) {
  const columns = createPredictColumns(2);
  columns.count = 2;
  columns.oldestWaitingMs[0] = oldestMs;
  columns.firstTokenGapMs[0] = gapMs;
  columns.expectedWaitMs[0] = gapMs * waiting;
  columns.sinceFirstTokenMs[0] = reportAgeMs + 100;
  columns.sinceDispatchMs[0] = reportAgeMs;
  const bounds = createStalledQueueBounds(2);
  for (const part of [bounds.leastMs, bounds.leastQuantileMs]) part.fill(7);
  fillStalledQueueBounds(columns, bounds);
  return [0, 1].map((row) => ({ median: bounds.leastMs[row]!, quantile: bounds.leastQuantileMs[row]! }));
}

test('the less a queue moves, the higher is the lower bound of a wait', () => {
  const [long, none] = listLeast({ oldestMs: 5000, gapMs: 500, waiting: 100 });
  assert.ok(long!.quantile > 29_000 && long!.quantile < 30_000, 'six tenths of the requests times the pace');
  assert.ok(Math.abs(long!.median - (0.25 / 0.6) * long!.quantile) < 1e-6);
  assert.deepEqual(none, { median: 0, quantile: 0 }, 'without a history');
  assert.equal(listLeast({ oldestMs: 5000, gapMs: 500, waiting: 12 })[0]!.quantile, 5000, 'as long as the oldest');
  assert.equal(listLeast({ oldestMs: 5000, gapMs: 500, waiting: 4 })[0]!.quantile, 2000, 'the queue is gone by then');
});

test('a queue that has just begun, and one with old reports, hardly raise the bound', () => {
  assert.ok(listLeast({ oldestMs: 50, gapMs: 1000, waiting: 10 })[0]!.quantile <= 50);
  const late = listLeast({ oldestMs: 5000, gapMs: 500, waiting: 100, reportAgeMs: 2500 });
  assert.deepEqual(late[0], { median: 0, quantile: 0 });
});

const rows = observePool({ rows: 300, servers: [1, 1] });
const model = trainModel('m@1', tabulate(rows));
const NOW_MS = 1_000_000;

/** The same row at both servers. */
function predictBoth(
  live: LiveModel,
): readonly { readonly p50: number; readonly p90: number; readonly tpot: number }[] {
  const columns = createPredictColumns(2);
  columns.count = 2;
  columns.podTypes = [''];
  columns.source = Buffer.from('10.0.0.010.0.0.1');
  for (const row of [0, 1]) {
    for (const name of METRIC_COLUMNS) columns[name][row] = rows[0]!.input[name];
    columns.serverIpStart[row] = 8 * row;
    columns.serverIpLength[row] = 8;
  }
  const create = () => ({ ttftMs: new Float64Array(2), tpotMs: new Float64Array(2) });
  const [p50, p90] = [create(), create()];
  live.predictStatistics(columns, [
    { statistic: 'p50', predicted: p50 },
    { statistic: 'p90', predicted: p90 },
  ]);
  return [0, 1].map((row) => ({ p50: p50.ttftMs[row]!, p90: p90.ttftMs[row]!, tpot: p90.tpotMs[row]! }));
}

/** Twenty requests of which two were answered, the last one long ago. */
function fillQueue(live: LiveModel): void {
  const server = live.servers.ensure(Buffer.from('10.0.0.0'));
  const history = live.histories.ensure(server);
  for (let i = 0; i < 20; i++) history.dispatch(String(i), { atMs: NOW_MS - 20_000 + i, tokens: 1000 });
  for (const [request, beforeMs] of [
    ['0', 19_000],
    ['1', 18_000],
  ] as const)
    history.firstToken(request, NOW_MS - beforeMs);
  history.dispatch('last', { atMs: NOW_MS - 1, tokens: 1000 });
}

test('where requests wait for longer than predicted, the median and the p90 rise before the first of them is answered', () => {
  const live = createLiveModel(model, { nowMs: () => NOW_MS });
  const [before] = predictBoth(live);
  fillQueue(live);
  const [stalled, other] = predictBoth(live);
  assert.ok(before!.p90 < 4000 && stalled!.p90 > 8900, `${before!.p90} to ${stalled!.p90}`);
  assert.ok(stalled!.p50 > 4400 && stalled!.p50 < stalled!.p90, `${before!.p50} to ${stalled!.p50}`);
  assert.equal(other!.p90, predictBoth(createLiveModel(model, { nowMs: () => NOW_MS }))[1]!.p90);
  assert.equal(stalled!.tpot, before!.tpot);
});

test('a request is compared with the interval that was raised', () => {
  const live = createLiveModel(model, { nowMs: () => NOW_MS });
  const columns = tabulate(rows.slice(0, 1));
  columns.oldestWaitingMs[0] = 5000;
  columns.firstTokenGapMs[0] = 500;
  columns.expectedWaitMs[0] = 50_000;
  columns.sinceFirstTokenMs[0] = 0;
  columns.sinceDispatchMs[0] = 0;
  const { ttft } = live.forecast(columns, '', Buffer.from('10.0.0.0'));
  assert.ok(
    Math.abs(forecastP90Ms(ttft) - listLeast({ oldestMs: 5000, gapMs: 500, waiting: 100 })[0]!.quantile) < 1e-6,
  );
});

/** A request at the end of a queue that should take 50 s, at a server that answers at once. */
function observeIdle(live: LiveModel): number {
  const columns = tabulate(rows.slice(0, 1));
  columns.oldestWaitingMs[0] = 5000;
  columns.firstTokenGapMs[0] = 500;
  columns.expectedWaitMs[0] = 50_000;
  columns.sinceFirstTokenMs[0] = 0;
  columns.sinceDispatchMs[0] = 0;
  const forecast = live.forecast(columns, '', Buffer.from('10.0.0.0'));
  live.observe(forecast, 'ttft', { observedMs: rows[0]!.ttftMs! });
  return forecast.ttft.medianMs;
}

test('bounds that proved wrong are not used: requests whose first tokens are reported to another process seem to wait', () => {
  const live = createLiveModel(model, { nowMs: () => NOW_MS });
  const medians = Array.from({ length: 60 }, () => observeIdle(live));
  assert.ok(medians[0]! > 11_000, `at first: ${medians[0]}`);
  assert.ok(medians.at(-1)! < 2 * rows[0]!.ttftMs!, `in the end: ${medians.at(-1)}`);
  fillQueue(live);
  assert.ok(predictBoth(live)[0]!.p90 < 4000, 'Predict does not believe them either');
});
