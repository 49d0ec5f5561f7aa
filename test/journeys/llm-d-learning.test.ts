/**
 * A router that knows two URLs and nothing else, in front of a simulated pool: it asks for predictions, reports what
 * happened as llm-d's router does (two rows a request, whole milliseconds, no server, no prefix score in TPOT rows), and
 * after 3,000 rows its predictions are within 15 % of what happens.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRandom } from '../../src/prediction/simulator/random-draws.ts';
import { type Candidate, type RemotePolicy, simulateRemotely } from '../../src/prediction/simulator/simulate.ts';
import { GPUS } from '../../src/prediction/simulator/step-time.ts';
import { createWorkload } from '../../src/prediction/simulator/workload.ts';
import { waitForTraining } from '../support/prediction/llm-d-program.ts';
import {
  createRouter,
  createRouterRow,
  createTpotEntry,
  createTtftEntry,
  type RouterPrediction,
  type RouterRow,
} from '../support/prediction/llm-d-router.ts';
import { createServers } from '../support/prediction/simulated-pool.ts';
import { startProgram } from '../support/programs/start-program.ts';

const SERVERS = 4;
const ROWS = 3000;
/** Rows between two looks at whether a training has ended: enough for one to have become due. */
const ROWS_A_TRAINING = 1000;
const JUDGED_ROWS = 1000;
const MAX_MAPE = 15;

function toRow(candidate: Candidate): RouterRow {
  return createRouterRow({
    kv_cache_percentage: Math.min(1, candidate.kvCacheUsage),
    input_token_length: candidate.inputTokenLength,
    num_request_waiting: candidate.numRequestWaiting,
    // The router's own count, not the scraped one.
    num_request_running: candidate.underWay,
    prefix_cache_score: candidate.prefixCacheScore,
    prefill_tokens_in_flight: candidate.inflightTokens,
  });
}

interface Asked {
  readonly row: RouterRow;
  readonly prediction: RouterPrediction;
}

/** Errors in percent, in the order in which the times became known. */
function createErrors() {
  const errors: number[] = [];
  return {
    add: (predictedMs: number, observedMs: number) => {
      errors.push((100 * Math.abs(predictedMs - observedMs)) / observedMs);
    },
    meanOfLast: (count: number) => {
      const last = errors.slice(-count);
      return last.reduce((sum, error) => sum + error, 0) / last.length;
    },
    get count() {
      return errors.length;
    },
  };
}

test('a router with two URLs gets predictions within 15 % after 3,000 rows, and learns nothing else', async () => {
  await using program = await startProgram({
    PREDICTION_REFIT_ROWS: String(ROWS_A_TRAINING / 2),
    PREDICTION_REFIT_SECONDS: '86400',
    // A mean error is least at the median.
    LLM_D_QUANTILE: '0.5',
    LOG_LEVEL: 'warn',
  });
  const url = `${program.httpUrl}/llm-d/qwen3-32b`;
  const router = createRouter({ predictionUrl: url, trainingUrl: url });
  const errors = { ttft: createErrors(), tpot: createErrors() };
  const asked = new Map<number, Asked>();
  const latest = new Map<string, RouterRow>();
  let sentRows = 0;
  let nextFlushMs = 1000;
  let trainings = 0;

  async function flushAt(nowMs: number): Promise<void> {
    if (nowMs < nextFlushMs) return;
    nextFlushMs = nowMs + 1000;
    assert.notEqual(await router.flush(), 422);
    if (sentRows < ROWS_A_TRAINING) return;
    sentRows -= ROWS_A_TRAINING;
    trainings = await waitForTraining(program, trainings);
  }

  let turn = 0;
  const policy: RemotePolicy = {
    name: 'turns',
    async choose(request, candidates, nowMs) {
      await flushAt(nowMs);
      const rows = candidates.map(toRow);
      for (const [i, row] of rows.entries()) latest.set(candidates[i]!.server, row);
      const predictions = await router.predict(rows);
      assert.equal(predictions.length, rows.length);
      const choice = turn++ % candidates.length;
      asked.set(request.id, { row: rows[choice]!, prediction: predictions[choice]! });
      return choice;
    },
    async onFirstToken(request, _, ttftMs, nowMs) {
      const { row, prediction } = asked.get(request.id)!;
      errors.ttft.add(prediction.ttft_ms, ttftMs);
      router.addTrainingData([createTtftEntry(row, ttftMs, Date.now() - 3_600_000 + nowMs)]);
      sentRows += 1;
    },
    async onFinished(request, candidate, tpotMs, nowMs) {
      const { row, prediction } = asked.get(request.id)!;
      asked.delete(request.id);
      if (tpotMs === undefined) return;
      errors.tpot.add(prediction.tpot_ms, tpotMs);
      const atMs = Date.now() - 3_600_000 + nowMs;
      router.addTrainingData([createTpotEntry(row, latest.get(candidate.server)!, { tpotMs, atMs })]);
      sentRows += 1;
    },
  };
  await simulateRemotely({ ...createPool(), policy, scrapeIntervalMs: 100, scrapeDelayMs: 20 });
  await router.flush();
  assert.ok(errors.ttft.count + errors.tpot.count >= ROWS, `${errors.ttft.count} and ${errors.tpot.count} rows`);
  const mape = { ttft: errors.ttft.meanOfLast(JUDGED_ROWS / 2), tpot: errors.tpot.meanOfLast(JUDGED_ROWS / 2) };
  assert.ok(mape.ttft < MAX_MAPE && mape.tpot < MAX_MAPE, JSON.stringify(mape));
});

function createPool() {
  const gpu = GPUS.find(({ name }) => name === 'medium')!;
  const servers = createServers(Array.from({ length: SERVERS }, () => gpu));
  const workload = {
    kind: 'poisson',
    requestsPerSecond: 12,
    durationMs: 130_000,
    medianInputTokens: 800,
    medianOutputTokens: 120,
    prefixGroups: 8,
    sharedShare: 0.5,
    blockTokens: 64,
  } as const;
  return { servers, requests: createWorkload(workload, createRandom(7)) };
}
