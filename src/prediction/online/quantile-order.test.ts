import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import type { Statistic } from '../model/calibration.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../schema/columns.ts';
import type { Observation } from '../schema/observation.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { trainModel } from '../training/train-model.ts';
import { createLiveModel, type LiveModel } from './live-model.ts';

const SERVERS = ['10.0.0.0', '10.0.0.1'];
const ROWS = observePool({ rows: 600, servers: [1, 2] });
const QUANTILES: readonly Statistic[] = ['p50', 'p90', 'p95', 'p99'];
const LEARNED = trainModel('m@1', tabulate(ROWS));

function predict(live: LiveModel, rows: readonly Observation[]) {
  const columns = createPredictColumns(rows.length);
  columns.count = rows.length;
  columns.podTypes = [''];
  columns.source = Buffer.from(SERVERS.join(''));
  rows.forEach(({ input }, i) => {
    for (const name of METRIC_COLUMNS) columns[name][i] = input[name];
    columns.serverIpLength[i] = SERVERS[0]!.length;
    columns.serverIpStart[i] = SERVERS.indexOf(input.serverIp) * SERVERS[0]!.length;
  });
  const predicted = { ttftMs: new Float64Array(rows.length), tpotMs: new Float64Array(rows.length) };
  live.predict(columns, predicted);
  return predicted;
}

function observe(live: LiveModel, row: Observation, ms: number): void {
  const forecast = live.forecast(tabulate([row]), '', Buffer.from(row.input.serverIp));
  for (const target of PREDICTION_TARGETS) live.observe(forecast, target, { observedMs: ms });
}

for (const [title, readMs] of [
  ['far below what is predicted', () => 0.001],
  ['far above what is predicted', () => 86_400_000],
  ['now one and now the other', (i: number) => (i % 5 === 0 ? 86_400_000 : 0.001)],
] as const)
  test(`quantiles stay in order while every observed time is ${title}`, () => {
    const lives = QUANTILES.map((statistic) => createLiveModel({ ...LEARNED, statistic }));
    const asked = ROWS.slice(0, 64);
    for (let i = 0; i < 400; i++) {
      for (const live of lives) observe(live, ROWS[i]!, readMs(i));
      if (i % 20 !== 0) continue;
      const answers = lives.map((live) => predict(live, asked));
      for (const times of ['ttftMs', 'tpotMs'] as const)
        for (const row of asked.keys())
          for (let q = 1; q < QUANTILES.length; q++) {
            const [lower, upper] = [answers[q - 1]![times][row]!, answers[q]![times][row]!];
            assert.ok(upper >= lower, `${QUANTILES[q]} of ${times} after ${i} reports: ${upper} below ${lower}`);
          }
    }
  });
