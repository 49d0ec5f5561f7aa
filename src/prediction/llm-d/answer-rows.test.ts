/** A large call is answered in slices, and one version of the model answers all of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import type { Call } from '../../http/endpoint.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { createPredictor, type SwappablePredictor } from '../online/predictor.ts';
import { trainModel } from '../training/train-model.ts';
import { createRowAnswerer } from './answer-rows.ts';
import { createLlmDEndpoints } from './llm-d-endpoints.ts';
import { createReadinessReader } from './model-readiness.ts';
import type { Objective } from './prediction-answer.ts';
import { ROWS_A_TURN } from './read-rows.ts';

const OBJECTIVE: Objective = { type: 'quantile', quantile: 0.5 };
const FORMER = trainModel('m@1', tabulate(observePool({ rows: 300 })));
/** The same rows take ten times as long. */
const NEXT = trainModel('m@2', tabulate(observePool({ rows: 300, servers: [10] })));
const ROW = {
  kv_cache_percentage: 0.25,
  input_token_length: 512,
  num_request_waiting: 0,
  num_request_running: 7,
  num_tokens_generated: 1,
  prefix_cache_score: 0.5,
};
const BODY = Buffer.from(JSON.stringify({ requests: Array.from({ length: 3 * ROWS_A_TURN }, () => ROW) }));

const CALL: Call = {
  method: 'POST',
  query: '',
  parameter: 'm',
  traceId: '',
  log: createLog('silent'),
  clientAddress: '127.0.0.1',
  header: (name) => (name === 'content-type' ? 'application/json' : undefined),
  text: async () => BODY.toString(),
  bytes: async () => BODY,
  form: async () => [],
  setHeader() {},
};

interface Item {
  readonly ttft_ms: number;
  readonly last_model_load: string;
}

/** A clock that is a second further at each look, so that each version has a loading time of its own. */
function createTickingWorld() {
  let nowMs = Date.parse('2026-01-01T00:00:00Z');
  return { ...realWorld, nowMs: () => (nowMs += 1000) };
}

function createService(predictor: SwappablePredictor) {
  const world = createTickingWorld();
  const answerRows = createRowAnswerer({ predictor, objective: OBJECTIVE });
  let calls = 0;
  const { byModel } = createLlmDEndpoints({
    world,
    rule: { mode: 'off', verifyToken: async () => assert.fail('no token is needed') },
    objective: OBJECTIVE,
    answerRows(asked) {
      calls++;
      const answered = answerRows(asked);
      if (calls === 1) predictor.swap('m', NEXT);
      return answered;
    },
    takeTrainingRows: async () => {},
    measuredTimes: { answeringModel: (targetModel) => targetModel },
    readReadiness: createReadinessReader({ predictor, unknownModel: 'prior', world }),
    observeSeconds() {},
    checkReady: async () => {},
  });
  const { answer } = byModel.find(({ path }) => path === '/{target_model}/predict/bulk')!;
  return async (): Promise<readonly Item[]> => {
    const { body } = await answer(CALL);
    return (JSON.parse(Buffer.from(body).toString()) as { predictions: Item[] }).predictions;
  };
}

test('a version that is swapped in between two slices of a call answers all rows of the call', async () => {
  const predictor = createPredictor();
  predictor.swap('m', FORMER);
  const predict = createService(predictor);
  const during = await predict();
  const [after] = await predict();
  assert.equal(during.length, 3 * ROWS_A_TURN);
  assert.deepEqual([...new Set(during.map(({ ttft_ms }) => ttft_ms))], [after!.ttft_ms]);
  assert.deepEqual([...new Set(during.map(({ last_model_load }) => last_model_load))], [after!.last_model_load]);
});
