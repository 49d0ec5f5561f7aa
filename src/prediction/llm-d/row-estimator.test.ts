import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { createPredictor } from '../online/predictor.ts';
import { type AnswerStatistic, createPredictColumns, METRIC_COLUMNS } from '../schema/columns.ts';
import { trainModel } from '../training/train-model.ts';
import type { Objective } from './prediction-answer.ts';
import { createRowEstimator } from './row-estimator.ts';

const observed = observePool({ rows: 600 });
const predictor = createPredictor();
predictor.swap('m', trainModel('m@1', tabulate(observed)));

/** The first rows of the pool, with these prefix scores. */
function createColumns(prefixScores: readonly number[]) {
  const columns = createPredictColumns(prefixScores.length);
  columns.count = prefixScores.length;
  columns.podTypes.push('');
  for (const [row, prefixScore] of prefixScores.entries()) {
    for (const name of METRIC_COLUMNS) columns[name][row] = observed[row]!.input[name];
    columns.prefixCacheScore[row] = prefixScore;
  }
  return columns;
}

const SCORES = [0.9, 0, 0.4, 0.7];

const objectives: [objective: Objective, statistic: AnswerStatistic][] = [
  [{ type: 'quantile', quantile: 0.5 }, 'p50'],
  [{ type: 'quantile', quantile: 0.9 }, 'p90'],
  [{ type: 'quantile', quantile: 0.95 }, 'p95'],
  [{ type: 'quantile', quantile: 0.99 }, 'p99'],
  [{ type: 'mean', quantile: 0.9 }, 'mean'],
];
for (const [objective, statistic] of objectives)
  test(`createRowEstimator() answers ${statistic} for the ${objective.type} ${objective.quantile}, within its bounds`, () => {
    const estimates = createRowEstimator({ predictor, objective })('m', createColumns(SCORES));
    const ttft = predictor.predictBatch('m', createColumns(SCORES), [statistic, 'p10', 'p90']).predicted;
    const tpot = predictor.predictBatch('m', createColumns([0, 0, 0, 0]), [statistic, 'p10', 'p90']).predicted;
    for (let row = 0; row < SCORES.length; row++)
      for (const [estimate, [answer, low, high]] of [
        [estimates.readTtft(row), ttft.map(({ ttftMs }) => ttftMs[row]!)],
        [estimates.readTpot(row), tpot.map(({ tpotMs }) => tpotMs[row]!)],
      ] as const) {
        assert.equal(estimate.ms, answer);
        assert.equal(estimate.lowMs, Math.min(answer!, low!));
        assert.equal(estimate.highMs, Math.max(answer!, high!));
        assert.ok(estimate.lowMs < estimate.highMs);
      }
  });

test('createRowEstimator() predicts TPOT without the prefix score, which TPOT rows do not have, and TTFT with it', () => {
  const estimateRows = createRowEstimator({ predictor, objective: { type: 'quantile', quantile: 0.5 } });
  const cached = estimateRows('m', createColumns([0.9, 0.9]));
  const uncached = estimateRows('m', createColumns([0, 0]));
  assert.equal(cached.readTpot(0).ms, uncached.readTpot(0).ms);
  assert.ok(cached.readTtft(0).ms < uncached.readTtft(0).ms);
});
