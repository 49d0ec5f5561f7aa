/**
 * A router that knows two URLs and nothing else replays a recording of a real pool (`test/fixtures/llm-d-recording`): each row
 * is predicted, then reported. From the row 3,000 on, predictions are within 15 % of what was measured.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { waitForTraining } from '../support/prediction/llm-d-program.ts';
import { createRouter, createRouterRow, type RouterEntry } from '../support/prediction/llm-d-router.ts';
import { startProgram } from '../support/programs/start-program.ts';

const ROWS_LEARNED = 3000;
const ROWS_A_CALL = 10;
const ROWS_A_TRAINING = 500;
const MAX_MAPE = 15;

type Time = 'ttft' | 'tpot';

function readRecording(): RouterEntry[] {
  const [head, ...lines] = readFileSync('test/fixtures/llm-d-recording/rows.csv', 'utf8').trim().split('\n');
  const names = head!.split(',');
  return lines.map((line) => {
    const values = line.split(',').map(Number);
    const recorded = Object.fromEntries(names.map((name, i) => [name, values[i]!])) as unknown as RouterEntry;
    return { ...createRouterRow({ num_tokens_generated: 0 }), ...recorded, timestamp: new Date().toISOString() };
  });
}

/** What the router asks before it knows the times. */
function toRow({ actual_ttft_ms: _ttft, actual_tpot_ms: _tpot, timestamp: _at, ...row }: RouterEntry) {
  return { ...row, num_tokens_generated: 1 };
}

test('a router that replays a recording is predicted within 15 % after 3,000 rows', async () => {
  const entries = readRecording();
  await using program = await startProgram({
    PREDICTION_REFIT_ROWS: String(ROWS_A_TRAINING / 2),
    PREDICTION_REFIT_SECONDS: '86400',
    // A mean error is least at the median.
    LLM_D_QUANTILE: '0.5',
    LOG_LEVEL: 'warn',
  });
  const url = `${program.httpUrl}/llm-d/qwen3-32b`;
  const router = createRouter({ predictionUrl: url, trainingUrl: url });
  const errors: Record<Time, number[]> = { ttft: [], tpot: [] };
  let trainings = 0;
  for (let start = 0; start < entries.length; start += ROWS_A_CALL) {
    const rows = entries.slice(start, start + ROWS_A_CALL);
    const predictions = await router.predict(rows.map(toRow));
    for (const [i, row] of rows.entries())
      for (const time of ['ttft', 'tpot'] as const) {
        const observedMs = row[`actual_${time}_ms`];
        if (start < ROWS_LEARNED || observedMs === 0) continue;
        errors[time].push((100 * Math.abs(predictions[i]![`${time}_ms`] - observedMs)) / observedMs);
      }
    router.addTrainingData(rows);
    assert.equal(await router.flush(), 202);
    // Replayed in seconds, a recording leaves the training beside it no time.
    if ((start + ROWS_A_CALL) % ROWS_A_TRAINING === 0) trainings = await waitForTraining(program, trainings);
  }
  for (const time of ['ttft', 'tpot'] as const) {
    const mape = errors[time].reduce((sum, error) => sum + error, 0) / errors[time].length;
    assert.ok(errors[time].length > 100 && mape < MAX_MAPE, `${time}: ${mape} % of ${errors[time].length} rows`);
  }
});
