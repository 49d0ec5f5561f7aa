/**
 * Bad input at what gateways and their operators call beside the contract: llm-d's interface, traces and capacity. Each
 * refusal has the shape of its wire and says what was wrong, and nothing of a refused batch is stored.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, test } from 'node:test';
import protobuf from 'protobufjs';
import { listSamples } from '../../src/prediction/observations/sample-store.ts';
import { createRouterRow, createTpotEntry } from '../support/prediction/llm-d-router.ts';
import { createDataDir, type Program, startProgram } from '../support/programs/start-program.ts';
import { openTestStore } from '../support/store/engines.ts';

const dataDir = createDataDir();
let program: Program;
/** The root of llm-d's own port. */
let llmDUrl: string;
before(async () => {
  const llmD = { LLM_D_PORT: '0', LLM_D_MODEL: 'm' };
  const traces = { PREDICTION_TRACES_KV_CAPACITY_TOKENS: '100000', PREDICTION_TRACES_HOLD_SECONDS: '1' };
  program = await startProgram({ ...llmD, ...traces, LOG_LEVEL: 'error', PREDICTION_LEARNING: 'false' }, dataDir);
  llmDUrl = /llm-d\s+(\S+)/.exec(program.output())?.[1] ?? '';
});
after(async () => {
  await program[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
});

const PROTOBUF = { 'content-type': 'application/x-protobuf' };
const JSON_TYPE = { 'content-type': 'application/json' };
const PROXIED = { 'x-forwarded-for': '203.0.113.1' };
const MANY_PAIRS = `?${'a&'.repeat(300)}`;

interface BadCall {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

function send(url: string, { method = 'POST', headers = {}, body }: BadCall): Promise<Response> {
  return fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
}

const { root } = protobuf.parse('syntax = "proto3"; message Status { int32 code = 1; string message = 2; }');

async function readStatus(response: Response, isBinary: boolean): Promise<{ code: number; message: string }> {
  assert.equal(response.headers.get('content-type'), isBinary ? PROTOBUF['content-type'] : JSON_TYPE['content-type']);
  if (!isBinary) return (await response.json()) as { code: number; message: string };
  const bytes = new Uint8Array(await response.arrayBuffer());
  return root.lookupType('Status').decode(bytes).toJSON() as { code: number; message: string };
}

const [INVALID, RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNAUTHENTICATED] = [3, 8, 12, 16];
const TRUNCATED = Uint8Array.of(0x0a, 0x7f);
const traceCalls: [title: string, call: BadCall, status: number, code: number, message: RegExp][] = [
  ['another method', { method: 'PUT' }, 405, UNIMPLEMENTED, /'PUT' not supported, allowed: POST/],
  ['a method that few know', { method: 'PROPFIND' }, 405, UNIMPLEMENTED, /allowed: POST/],
  ['a path beneath', { path: '/v1/traces/x' }, 404, UNIMPLEMENTED, /POST \/v1\/traces\/x/],
  ['the metrics of the collector', { path: '/v1/metrics' }, 404, UNIMPLEMENTED, /POST \/v1\/metrics/],
  ['too many parameters', { path: `/v1/traces${MANY_PAIRS}` }, 400, INVALID, /at most 256 parameters/],
  ['no token', { headers: PROXIED }, 401, UNAUTHENTICATED, /token/],
  ['a large body', { body: new Uint8Array(2_000_000) }, 413, RESOURCE_EXHAUSTED, /at most 1048576 bytes/],
  ['a body of another encoding', { headers: { 'content-encoding': 'br' } }, 415, INVALID, /got "br"/],
  ['a body that ends early', { body: TRUNCATED }, 400, INVALID, /Cannot read the (export|message)/],
];
for (const [title, call, status, code, message] of traceCalls)
  for (const type of [PROTOBUF, JSON_TYPE])
    test(`POST /v1/traces refuses ${title} as google.rpc.Status, in ${type['content-type']}`, async () => {
      const url = `${program.httpUrl}${call.path ?? '/v1/traces'}`;
      const response = await send(url, { ...call, headers: { ...type, ...call.headers } });
      const refusal = await readStatus(response, type === PROTOBUF);
      assert.deepEqual([response.status, refusal.code], [status, code]);
      assert.match(refusal.message, message);
      assert.equal(response.headers.get('allow'), status === 405 ? 'POST' : null);
    });

for (const [type, method, status] of [
  ['text/plain', 'POST', 415],
  ['', 'POST', 415],
  ['', 'GET', 405],
] as const)
  test(`${method} /v1/traces with the content type "${type}" is refused in JSON`, async () => {
    const response = await send(`${program.httpUrl}/v1/traces`, {
      method,
      headers: type ? { 'content-type': type } : {},
    });
    assert.equal(response.status, status);
    await readStatus(response, false);
  });

type Detail =
  | string
  | readonly { readonly loc: readonly (string | number)[]; readonly msg: string; readonly type: string }[];

async function readDetail(response: Response): Promise<Detail> {
  assert.equal(response.headers.get('content-type'), 'application/json');
  const { detail, ...rest } = (await response.json()) as { readonly detail: Detail };
  assert.deepEqual(rest, {});
  return detail;
}

const GOOD_ROW = createRouterRow();
const GOOD_ENTRY = createTpotEntry(GOOD_ROW, GOOD_ROW, { tpotMs: 12.5, atMs: Date.now() });
const toBody = (value: unknown): BadCall => ({ headers: JSON_TYPE, body: JSON.stringify(value) });

/** A text of the refusal, or the places of all its faults. */
type Expected = RegExp | readonly string[];
const llmDCalls: [title: string, path: string, call: BadCall, status: number, expected: Expected][] = [
  ['another method', '/predict', { method: 'GET' }, 405, /allowed: POST/],
  ['another method of a training call', '/add_training_data_bulk', { method: 'DELETE' }, 405, /allowed: POST/],
  ['another method of a status', '/status', {}, 405, /allowed: GET/],
  ['a method that few know', '/healthz', { method: 'PROPFIND' }, 405, /allowed: GET/],
  ['a question about methods', '/predict/bulk', { method: 'OPTIONS' }, 405, /allowed: POST/],
  ['an unknown path', '/model/ttft/xgb/json', { method: 'GET' }, 404, /GET .*\/model\/ttft\/xgb\/json/],
  ['no content type', '/predict', { body: new Uint8Array(2) }, 415, /must be application\/json, got ""/],
  ['a form', '/predict/bulk', { headers: { 'content-type': 'multipart/form-data' }, body: 'a' }, 415, /"multipart/],
  [
    'plain text',
    '/add_training_data_bulk',
    { headers: { 'content-type': 'text/plain' }, body: '{}' },
    415,
    /"text\/plain"/,
  ],
  ['a large body', '/predict', { headers: JSON_TYPE, body: 'x'.repeat(7_000_000) }, 413, /at most 6291456 bytes/],
  ['no token', '/status', { method: 'GET', headers: PROXIED }, 401, /token/],
  ['too many parameters', `/status${MANY_PAIRS}`, { method: 'GET' }, 400, /at most 256 parameters/],
  ['a body that is not JSON', '/predict', { headers: JSON_TYPE, body: '{' }, 422, ['body']],
  ['no body', '/predict/bulk/strict', { headers: JSON_TYPE }, 422, ['body']],
  ['a body without its list', '/predict/bulk', toBody({}), 422, ['body.requests']],
  ['an empty list', '/predict/bulk/strict', toBody({ requests: [] }), 422, ['body.requests']],
  [
    'bad rows among good ones',
    '/add_training_data_bulk',
    toBody({
      entries: [GOOD_ENTRY, { ...GOOD_ENTRY, actual_ttft_ms: -1 }, GOOD_ENTRY, { ...GOOD_ENTRY, timestamp: 'x' }],
    }),
    422,
    ['body.entries.1.actual_ttft_ms', 'body.entries.3.timestamp'],
  ],
];
for (const [title, path, call, status, expected] of llmDCalls)
  for (const place of ['its own port', 'the path of a model'])
    test(`llm-d's interface at ${place} refuses ${title}, on ${path.slice(0, 30)}`, async () => {
      const base = place === 'its own port' ? llmDUrl : `${program.httpUrl}/llm-d/m`;
      const response = await send(base + path, call);
      const detail = await readDetail(response);
      assert.equal(response.status, status);
      checkDetail(detail, expected);
    });

function checkDetail(detail: Detail, expected: Expected): void {
  if (expected instanceof RegExp) {
    assert.ok(typeof detail === 'string');
    assert.match(detail, expected);
    return;
  }
  assert.ok(typeof detail !== 'string');
  assert.deepEqual(
    detail.map(({ loc }) => loc.join('.')),
    expected,
  );
  for (const { msg, type } of detail) assert.ok(msg.length > 0 && type.length > 0);
}

const NO_MODEL = /the path must name it, as \/llm-d\/\{target_model\}\//;
const modelPaths: [path: string, method: string, status: number, message: RegExp][] = [
  ['/llm-d//predict', 'POST', 400, NO_MODEL],
  ['/llm-d/predict', 'POST', 400, NO_MODEL],
  ['/llm-d//predict/bulk/strict', 'POST', 400, NO_MODEL],
  ['/llm-d/add_training_data_bulk', 'POST', 400, NO_MODEL],
  ['/llm-d//status', 'GET', 400, NO_MODEL],
  ['/llm-d//predict', 'GET', 405, /allowed: POST/],
  ['/llm-d/m//predict', 'POST', 400, /must not begin or end with "\/", got "m\/"/],
  ['/llm-d/%FF/predict', 'POST', 400, /"%FF" is not percent-encoded UTF-8/],
  ['/llm-d/a%01b/predict', 'POST', 400, /no control character/],
  [`/llm-d/${'m'.repeat(246)}/predict`, 'POST', 400, /at most 245 bytes/],
  [`/llm-d/${encodeURIComponent('模'.repeat(83))}/predict`, 'POST', 400, /at most 245 bytes/],
  ['/llm-d', 'GET', 404, /GET \/llm-d$/],
  ['/llm-d/', 'POST', 404, /POST \/llm-d\/$/],
  ['/llm-d/m', 'GET', 404, /GET \/llm-d\/m$/],
];
for (const [path, method, status, message] of modelPaths)
  test(`${method} ${path.slice(0, 40)} is refused in the shape of FastAPI`, async () => {
    const body = method === 'GET' ? {} : toBody(GOOD_ROW);
    const response = await send(program.httpUrl + path, { ...body, method });
    assert.equal(response.status, status);
    checkDetail(await readDetail(response), message);
  });

const GOOD_QUERY = 'model=m&ttft_ms=1000&output_tokens=150';
const queries: [query: string, field: string, message: RegExp][] = [
  ['', 'model', /model must be given: the name of a target model$/],
  ['model=m&output_tokens=150', 'ttft_ms', /ttft_ms, tpot_ms or both must give a limit/],
  ['model=&ttft_ms=1&output_tokens=1', 'model', /model must be the name of a target model, got ""/],
  ['model=m&ttft_ms=-1&output_tokens=150', 'ttft_ms', /ttft_ms must be a number from 0.001 to 86400000, got "-1"/],
  ['model=m&tpot_ms=0&output_tokens=150', 'tpot_ms', /got "0"/],
  ['model=m&tpot_ms=&output_tokens=150', 'tpot_ms', /got ""/],
  ['model=m&tpot_ms=NaN&output_tokens=150', 'tpot_ms', /got "NaN"/],
  ['model=m&tpot_ms=Infinity&output_tokens=150', 'tpot_ms', /got "Infinity"/],
  ['model=m&tpot_ms=1e300&output_tokens=150', 'tpot_ms', /from 0.001 to 86400000, got "1e300"/],
  ['model=m&tpot_ms=0x10&output_tokens=150', 'tpot_ms', /got "0x10"/],
  ['model=m&tpot_ms=40&output_tokens=0', 'output_tokens', /from 1 to 1000000, got "0"/],
  ['model=m&tpot_ms=40&output_tokens=1e9', 'output_tokens', /from 1 to 1000000, got "1e9"/],
  ...['0', '0.4', '1', '2', '-0.9', 'NaN', '90%25'].map((quantile): [string, string, RegExp] => [
    `${GOOD_QUERY}&quantile=${quantile}`,
    'quantile',
    /quantile must be a number from 0.5 to 0.99, got/,
  ]),
  [`${GOOD_QUERY}&quantile=0.9&quantile=0.5`, 'quantile', /quantile must be given once/],
  [`${GOOD_QUERY}&tpot=40`, 'query', /query must not have "tpot"; allowed are model, ttft_ms, tpot_ms, quantile/],
  [`${GOOD_QUERY}&servers=${'a,'.repeat(256)}b`, 'servers', /servers must be at most 256/],
  [`${GOOD_QUERY}&pod_type=${'p'.repeat(257)}`, 'pod_type', /pod_type/],
  [`model=${'m'.repeat(257)}&ttft_ms=1&output_tokens=1`, 'model', /model/],
];
for (const [query, field, message] of queries)
  test(`GET /prediction/capacity?${query.slice(0, 60)} is refused by the name of the parameter`, async () => {
    const response = await fetch(`${program.httpUrl}/prediction/capacity?${query}`);
    assert.deepEqual([response.status, response.headers.get('content-type')], [400, 'application/problem+json']);
    const problem = (await response.json()) as { readonly detail: string; readonly field: string };
    assert.equal(problem.field, field);
    assert.match(problem.detail, message);
    assert.doesNotMatch(problem.detail, /expected|received|too small|too big|invalid input/i);
  });

test('GET /prediction/capacity refuses an unknown model, another method and a caller without a token', async () => {
  const ask = (query: string, init: RequestInit) => fetch(`${program.httpUrl}/prediction/capacity?${query}`, init);
  const unknown = await ask(GOOD_QUERY, {});
  assert.equal(unknown.status, 404);
  assert.match(await unknown.text(), /no version of the model \\"m\\" is served/);
  for (const [init, status] of [
    [{ method: 'POST' }, 405],
    [{ headers: PROXIED }, 401],
  ] as const) {
    const refused = await ask(GOOD_QUERY, init);
    assert.deepEqual([refused.status, refused.headers.get('content-type')], [status, 'application/problem+json']);
  }
});

test('nothing of all that was refused is stored', async () => {
  const metrics = await (await fetch(`${program.httpUrl}/metrics`)).text();
  assert.match(metrics, /^trivet_prediction_trace_requests_waiting 0$/m);
  const good = await send(`${llmDUrl}/add_training_data_bulk`, toBody({ entries: [GOOD_ENTRY] }));
  assert.equal(good.status, 202);
  await program.stop();
  await using store = await openTestStore({ dataDir, databaseUrl: undefined });
  const samples = await listSamples(store, 'm', { limit: 100 });
  assert.deepEqual(
    samples.map(({ observation }) => observation.tpotMs),
    [GOOD_ENTRY.actual_tpot_ms],
  );
});
