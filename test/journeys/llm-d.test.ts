/** The predictor interface of llm-d against the real program, spoken to as its router does. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findFreePort } from '../support/basics/free-port.ts';
import { ENVIRONMENT, entriesOf, findUrl, rowsFrom } from '../support/prediction/llm-d-program.ts';
import { createRouter, createRouterRow, postJson, postStrict } from '../support/prediction/llm-d-router.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';

let program: Program;
/** The root of the port of its own. */
let url: string;
before(async () => {
  program = await startProgram(ENVIRONMENT);
  url = findUrl(program);
});
after(() => program[Symbol.asyncDispose]());

/** Without what differs from call to call. */
function strip(text: string): unknown {
  return JSON.parse(
    text
      .replace(/"predicted_at":"\d{4}-[^"]+Z"/g, '"predicted_at":"T"')
      .replace(/"processing_time_ms":[\d.]+/, '"processing_time_ms":1'),
  );
}

const NUMBER = '\\d+(\\.\\d+)?';
const ITEM =
  `\\{"ttft_ms":${NUMBER},"tpot_ms":${NUMBER},"ttft_uncertainty":${NUMBER},"tpot_uncertainty":${NUMBER}` +
  `,"ttft_prediction_bounds":\\[${NUMBER},${NUMBER}\\],"tpot_prediction_bounds":\\[${NUMBER},${NUMBER}\\]` +
  ',"predicted_at":"\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z","model_type":"lightgbm"' +
  ',"objective_type":"quantile","quantile":0\\.9,"last_model_load":null\\}';
const TOTALS = `"total_requests":2,"successful_predictions":2,"failed_predictions":0,"processing_time_ms":${NUMBER}\\}`;

const golden: [path: string, body: object, status: number, answer: string][] = [
  ['/predict', createRouterRow(), 200, `^${ITEM}$`],
  [
    '/predict/bulk',
    { requests: rowsFrom(0, 2) },
    200,
    `^\\{"predictions":\\[${ITEM},${ITEM}\\],"errors":\\[\\],${TOTALS}$`,
  ],
  ['/predict/bulk/strict', { requests: rowsFrom(0, 2) }, 200, `^\\{"predictions":\\[${ITEM},${ITEM}\\],${TOTALS}$`],
  ['/add_training_data_bulk', { entries: [] }, 202, '^\\{"message":"Accepted 0 training samples\\."\\}$'],
];
for (const [path, body, status, answer] of golden)
  test(`POST ${path} answers to the letter, at the root and below the model`, async () => {
    for (const base of [
      url,
      `${program.httpUrl}/llm-d/m`,
      `${program.httpUrl}/llm-d/Qwen/Qwen3-32B`,
      `${program.httpUrl}/llm-d/Qwen%2FQwen3-32B`,
    ]) {
      const response = await postJson(base + path, body);
      assert.equal(response.status, status);
      assert.equal(response.headers.get('content-type'), 'application/json');
      assert.match(await response.text(), new RegExp(answer));
    }
  });

const gets: [path: string, answer: object][] = [
  [
    '/status',
    {
      is_ready: true,
      model_type: 'lightgbm',
      objective_type: 'quantile',
      quantile: 0.9,
      last_model_load: null,
      training_server_url: '',
      models_exist: { ttft_model: false, tpot_model: false },
      ensemble_active: false,
    },
  ],
  [
    '/model/download/info',
    {
      model_type: 'lightgbm',
      objective_type: 'quantile',
      quantile: 0.9,
      available_endpoints: {},
      model_status: { ttft_model_ready: false, tpot_model_ready: false },
      evaluation_info: {},
    },
  ],
  ['/healthz', { status: 'ok' }],
  ['/readyz', { status: 'ready', model_type: 'lightgbm', objective_type: 'quantile', quantile: 0.9 }],
];
for (const [path, answer] of gets)
  test(`GET ${path} answers to the letter`, async () => {
    const response = await fetch(url + path);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), JSON.stringify(answer));
  });

test('callers that come together share a call, and each gets the answers of its own rows', async () => {
  const router = createRouter({ predictionUrl: url, trainingUrl: url });
  const callers = Array.from({ length: 30 }, (_, i) => rowsFrom(100 * i, 1 + (i % 5)));
  const answers = await Promise.all(callers.map((rows) => router.predict(rows)));
  assert.equal(router.dispatched, 1);
  for (const [i, rows] of callers.entries()) {
    const alone = await postStrict(url, rows);
    assert.deepEqual(
      answers[i]!.map(({ ttft_ms, tpot_ms }) => [ttft_ms, tpot_ms]),
      alone.map(({ ttft_ms, tpot_ms }) => [ttft_ms, tpot_ms]),
    );
  }
});

test('one bad row refuses the merged call with every fault; the callers without it are answered when they ask again', async () => {
  const router = createRouter({ predictionUrl: url, trainingUrl: url });
  const good = router.predict(rowsFrom(0, 2));
  const bad = router.predict([createRouterRow({ kv_cache_percentage: 1.5, num_request_waiting: -1 })]);
  for (const answer of await Promise.allSettled([good, bad])) {
    assert.equal(answer.status, 'rejected');
    const { message } = answer.reason as Error;
    assert.match(message, /non-200 status: 422/);
    assert.match(message, /"loc":\["body","requests",2,"kv_cache_percentage"\]/);
    assert.match(message, /"loc":\["body","requests",2,"num_request_waiting"\]/);
  }
  assert.equal((await router.predict(rowsFrom(0, 2))).length, 2);
});

test('callers fail at once while the predictor is away, and are answered when it is back; rows of meanwhile are lost', async () => {
  const port = await findFreePort();
  const environment = { ...ENVIRONMENT, LLM_D_PORT: String(port) };
  const base = `http://127.0.0.1:${port}`;
  const router = createRouter({ predictionUrl: base, trainingUrl: base });
  const rows = rowsFrom(0, 3);
  const first = await startProgram(environment);
  const before = await router.predict(rows);
  await first.kill();
  for (const answer of await Promise.allSettled([router.predict(rows), router.predict(rows)]))
    assert.equal(answer.status, 'rejected');
  router.addTrainingData(entriesOf(rows, 'tpot'));
  await assert.rejects(router.flush());
  await using _second = await startProgram(environment, first.dataDir);
  const after = await router.predict(rows);
  assert.deepEqual(
    after.map(({ ttft_ms }) => ttft_ms),
    before.map(({ ttft_ms }) => ttft_ms),
  );
  assert.equal(await router.flush(), undefined);
});

test('36 dispatches of 1,000 rows at once are each answered in full and in order', async () => {
  const expected = new Map((await postStrict(url, rowsFrom(0, 7919))).map(({ ttft_ms }, i) => [i, ttft_ms]));
  const answers = await Promise.all(Array.from({ length: 36 }, (_, i) => postStrict(url, rowsFrom(i * 211, 1000))));
  for (const [i, predictions] of answers.entries()) {
    assert.equal(predictions.length, 1000);
    for (const [row, { ttft_ms }] of predictions.entries()) assert.equal(ttft_ms, expected.get((i * 211 + row) % 7919));
  }
});

test('10,000 rows are taken in one call, one more is refused', async () => {
  assert.equal((await postStrict(url, rowsFrom(0, 10_000))).length, 10_000);
  const response = await postJson(`${url}/predict/bulk/strict`, { requests: rowsFrom(0, 10_001) });
  assert.equal(response.status, 422);
  assert.equal(((await response.json()) as { detail: { type: string }[] }).detail[0]?.type, 'too_long');
  assert.equal(
    (await postJson(`${url}/add_training_data_bulk`, { entries: entriesOf(rowsFrom(0, 10_000), 'tpot') })).status,
    202,
  );
});

const refusals: [title: string, path: string, request: RequestInit, status: number][] = [
  [
    'a body larger than all rows may be',
    '/predict',
    { method: 'POST', body: 'x'.repeat(7_000_000), headers: { 'Content-Type': 'application/json' } },
    413,
  ],
  [
    'a form',
    '/predict',
    { method: 'POST', body: 'a=1', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } },
    415,
  ],
  ['another method', '/predict', { method: 'GET' }, 405],
  ['another path', '/model/ttft/xgb/json', { method: 'GET' }, 404],
  ['a caller behind a proxy, without a token', '/status', { headers: { 'X-Forwarded-For': '10.0.0.1' } }, 401],
];
for (const [title, path, request, status] of refusals)
  test(`${title} is refused in the shape of llm-d`, async () => {
    const response = await fetch(url + path, request);
    assert.equal(response.status, status);
    assert.equal(typeof ((await response.json()) as { detail: string }).detail, 'string');
  });

test('a model that is not learned is not ready where unknown models are rejected, and the mean is answered where it is set', async () => {
  await using strict = await startProgram({
    ...ENVIRONMENT,
    PREDICTION_UNKNOWN_MODEL: 'reject',
    LLM_D_OBJECTIVE: 'mean',
  });
  const base = findUrl(strict);
  const status = (await (await fetch(`${base}/status`)).json()) as { is_ready: boolean; objective_type: string };
  assert.deepEqual([status.is_ready, status.objective_type], [false, 'mean']);
  assert.equal((await fetch(`${base}/healthz`)).status, 200);
  for (const response of [await fetch(`${base}/readyz`), await postJson(`${base}/predict`, createRouterRow())]) {
    assert.equal(response.status, 503);
    assert.equal(typeof ((await response.json()) as { detail: string }).detail, 'string');
  }
});

test('probes of the interface are no requests in metrics and log, on the fast path and beside it', async () => {
  const environment = { ...ENVIRONMENT, LOG_LEVEL: 'info', PREDICTION_UNKNOWN_MODEL: 'reject' };
  await using strict = await startProgram(environment);
  const base = `${strict.httpUrl}/llm-d/some/model`;
  for (const method of ['GET', 'HEAD'])
    for (let count = 0; count < 5; count++) {
      assert.equal((await fetch(`${base}/readyz`, { method })).status, 503);
      assert.equal((await fetch(`${base}/healthz`, { method })).status, 200);
    }
  assert.equal((await fetch(`${base}/status`)).status, 200);
  const metrics = await (await fetch(`${strict.httpUrl}/metrics`)).text();
  assert.deepEqual(metrics.match(/^trivet_http_request_duration_seconds_count.*$/gm), [
    'trivet_http_request_duration_seconds_count{method="GET",status="200"} 1',
  ]);
  await strict.stop();
  const requests = strict.log().match(/"path":"[^"]*"/g);
  assert.deepEqual(requests, ['"path":"/llm-d/some/model/status"']);
});

test('a port without its model, and a quantile that is not kept, are refused at the start', async () => {
  await assert.rejects(startProgram({ LLM_D_PORT: '0' }), /LLM_D_PORT and LLM_D_MODEL must be given together/);
  await assert.rejects(
    startProgram({ LLM_D_QUANTILE: '0.8' }),
    /LLM_D_QUANTILE: must be one of 0\.5, 0\.9, 0\.95, 0\.99/,
  );
});

test('a body in chunks is read as any other', async () => {
  const body = new Blob([JSON.stringify({ requests: rowsFrom(0, 5000) })]).stream();
  const response = await fetch(`${url}/predict/bulk/strict`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body,
    duplex: 'half',
  } as RequestInit);
  assert.equal(response.status, 200);
  assert.equal(((await response.json()) as { total_requests: number }).total_requests, 5000);
});

test('the time of each predict call is counted, and of no other call', async () => {
  const readCount = async () => {
    const metrics = await (await fetch(`${program.httpUrl}/metrics`)).text();
    return Number(/^trivet_llm_d_predict_duration_seconds_count (\d+)$/m.exec(metrics)?.[1]);
  };
  const before = await readCount();
  await postStrict(url, rowsFrom(0, 2));
  await postJson(`${url}/predict`, createRouterRow());
  await postJson(`${url}/add_training_data_bulk`, { entries: [] });
  await postJson(`${url}/predict`, {});
  assert.equal((await readCount()) - before, 2);
});

test('the same call twice gives the same answer', async () => {
  const ask = async () =>
    strip(await (await postJson(`${url}/predict/bulk/strict`, { requests: rowsFrom(5, 3) })).text());
  assert.deepEqual(await ask(), await ask());
});
