/** Traces as an OpenTelemetry collector sends them, made by encoders that are not ours. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import protobuf from 'protobufjs';
import { waitUntil } from '../support/basics/wait-until.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';

/** The part of opentelemetry/proto that spans of requests use; fields beside it are sent too. */
const PROTO = `syntax = "proto3";
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; ArrayValue array_value = 5; bytes bytes_value = 7; } }
message ArrayValue { repeated AnyValue values = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message Scope { string name = 1; string version = 2; }
message Status { string message = 2; int32 code = 3; }
message Span { bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
  fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9; uint32 flags = 16; Status status = 15; }
message ScopeSpans { Scope scope = 1; repeated Span spans = 2; string schema_url = 3; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
message PartialSuccess { int64 rejected_spans = 1; string error_message = 2; }
message ExportTraceServiceResponse { PartialSuccess partial_success = 1; }
message RpcStatus { int32 code = 1; string message = 2; }`;
const { root } = protobuf.parse(PROTO, { keepCase: false });

const ENVIRONMENT = { PREDICTION_TRACES_KV_CAPACITY_TOKENS: '100000', PREDICTION_TRACES_HOLD_SECONDS: '1' };

const text = (key: string, stringValue: string) => ({ key, value: { stringValue } });
const double = (key: string, doubleValue: number) => ({ key, value: { doubleValue } });
const integer = (key: string, intValue: number) => ({ key, value: { intValue } });

function makeExport(spans: readonly object[]) {
  const resource = { attributes: [text('service.name', 'vllm'), text('k8s.pod.ip', '10.0.0.7')] };
  return { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'vllm.llm_engine' }, spans }] }] };
}

/** `startTimeUnixNano` as a text: JSON writes 64 bits so, and protobufjs reads it. */
function makeSpan(id: number, { ttft = 0.2, model = 'llama', agoMs = 5000 } = {}) {
  const startMs = Date.now() - agoMs + id;
  return {
    name: 'llm_request',
    kind: 2,
    startTimeUnixNano: `${startMs}000000`,
    endTimeUnixNano: `${startMs + 1200}000000`,
    attributes: [
      text('gen_ai.response.model', model),
      text('gen_ai.request.id', `cmpl-${id}`),
      { key: 'tags', value: { arrayValue: { values: [{ stringValue: 'x' }] } } },
      integer('gen_ai.usage.prompt_tokens', 100),
      integer('gen_ai.usage.completion_tokens', 11),
      double('gen_ai.latency.time_to_first_token', ttft),
      double('gen_ai.latency.e2e', 1.2),
    ],
    status: {},
  };
}

const ids = (id: number) => ({
  traceId: '5b8efff798038103d269b633813fc60c',
  spanId: id.toString(16).padStart(16, '0'),
});

function toProtobuf(spans: readonly ReturnType<typeof makeSpan>[]): Buffer {
  const type = root.lookupType('ExportTraceServiceRequest');
  const withIds = spans.map((span, i) => {
    const { traceId, spanId } = ids(i + 1000);
    return { ...span, traceId: Buffer.from(traceId, 'hex'), spanId: Buffer.from(spanId, 'hex') };
  });
  return Buffer.from(type.encode(type.fromObject(makeExport(withIds))).finish());
}

function post(program: Program, body: Uint8Array | string, headers: Record<string, string>) {
  return fetch(`${program.httpUrl}/v1/traces`, { method: 'POST', body: body as Uint8Array<ArrayBuffer>, headers });
}

async function readCount(program: Program, name: string): Promise<number> {
  const metrics = await (await fetch(`${program.httpUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)`, 'm').exec(metrics)?.[1] ?? 0);
}

async function waitForCount(program: Program, name: string, count: number): Promise<void> {
  await waitUntil(async () => (await readCount(program, name)) >= count);
}

const MODEL_MISSING =
  'span 0: the span or its resource must name the model, with one of gen_ai.response.model, gen_ai.request.model; or PREDICTION_TRACES_MODEL must';

const PROTOBUF = { 'content-type': 'application/x-protobuf' };
const JSON_TYPE = { 'content-type': 'application/json' };

test('requests of traces become observations, in protobuf and JSON, and outlive a kill', async () => {
  // It keeps them for longer than it runs, so that all of them are learned after the kill.
  const program = await startProgram({ ...ENVIRONMENT, PREDICTION_TRACES_HOLD_SECONDS: '3600' });
  const spans = Array.from({ length: 30 }, (_, i) => makeSpan(i));
  const zipped = await post(program, gzipSync(toProtobuf(spans)), { ...PROTOBUF, 'content-encoding': 'gzip' });
  assert.deepEqual([zipped.status, zipped.headers.get('content-type')], [200, 'application/x-protobuf']);
  assert.equal((await zipped.arrayBuffer()).byteLength, 0, 'a full success is an empty message');

  const asJson = Array.from({ length: 20 }, (_, i) => ({ ...makeSpan(i), ...ids(i) }));
  const json = await post(program, JSON.stringify(makeExport(asJson)), JSON_TYPE);
  assert.deepEqual([json.status, await json.json()], [200, {}]);

  await program.kill();
  await using again = await startProgram(ENVIRONMENT, program.dataDir);
  const learned = 'trivet_prediction_observed_total{model="llama",target="ttft"}';
  const escaped = learned.replaceAll(/[{}]/g, '\\$&');
  // Counted last: when a request is learned and its span is marked.
  await waitForCount(again, 'trivet_prediction_trace_requests_total', 50);
  assert.equal(await readCount(again, 'trivet_prediction_trace_requests_total'), 50);
  assert.equal(await readCount(again, escaped), 50);
});

test('spans that cannot be learned from are a partial success, in the encoding of the request', async () => {
  await using program = await startProgram(ENVIRONMENT);
  const spans = [makeSpan(1), makeSpan(2, { ttft: 0 }), makeSpan(3, { model: '' })];
  const binary = await post(program, toProtobuf(spans), PROTOBUF);
  const decoded = root.lookupType('ExportTraceServiceResponse').decode(new Uint8Array(await binary.arrayBuffer()));
  assert.deepEqual(decoded.toJSON(), {
    partialSuccess: {
      rejectedSpans: '2',
      errorMessage: 'span 1: gen_ai.latency.time_to_first_token must be more than 0',
    },
  });
  const json = await post(program, JSON.stringify(makeExport([{ ...spans[2], ...ids(3) }])), JSON_TYPE);
  assert.deepEqual(await json.json(), {
    partialSuccess: { rejectedSpans: '1', errorMessage: MODEL_MISSING },
  });
  // A count of the store that was under way does not have it yet.
  await waitForCount(program, 'trivet_prediction_trace_requests_waiting', 1);
  assert.equal(await readCount(program, 'trivet_prediction_trace_requests_waiting'), 1);
});

test('spans of a server whose clock is wrong are a partial success, and others are learned', async () => {
  await using program = await startProgram(ENVIRONMENT);
  const spans = [makeSpan(1), makeSpan(2, { agoMs: -120_000 }), makeSpan(3, { agoMs: 600_000 })];
  const body = JSON.stringify(makeExport(spans.map((span, id) => ({ ...span, ...ids(id) }))));
  const answer = await post(program, body, JSON_TYPE);
  const errorMessage = 'span 1: the request must not end more than 60 s ahead: check the clock of the server';
  assert.deepEqual(await answer.json(), { partialSuccess: { rejectedSpans: '2', errorMessage } });
  await waitForCount(program, 'trivet_prediction_trace_requests_total', 1);
  assert.equal(await readCount(program, 'trivet_prediction_trace_requests_total'), 1);
});

test('spans of other programs are passed over', async () => {
  await using program = await startProgram(ENVIRONMENT);
  const other = { name: 'GET /', startTimeUnixNano: '1', endTimeUnixNano: '2', ...ids(1) };
  const answer = await post(program, JSON.stringify(makeExport([other])), JSON_TYPE);
  assert.deepEqual([answer.status, await answer.json()], [200, {}]);
});

/** A span of V1 of vLLM, as its OutputProcessor writes it: nothing in it names the model. */
function makeSpanOfV1(id: number) {
  const { attributes, ...span } = makeSpan(id);
  const kept = attributes.filter(({ key }) => key !== 'gen_ai.response.model' && key !== 'tags');
  const more = [
    double('gen_ai.latency.time_in_queue', 0.01),
    double('gen_ai.latency.time_in_model_prefill', 0.19),
    double('gen_ai.latency.time_in_model_decode', 1),
    double('gen_ai.latency.time_in_model_inference', 1.19),
    double('gen_ai.request.top_p', 1),
    integer('gen_ai.request.max_tokens', 11),
    integer('gen_ai.request.n', 1),
  ];
  return { ...span, ...ids(id), attributes: [...kept, ...more] };
}

test('spans of V1 of vLLM, which name no model, are learned as those of PREDICTION_TRACES_MODEL', async () => {
  await using program = await startProgram({ ...ENVIRONMENT, PREDICTION_TRACES_MODEL: 'llama' });
  const spans = Array.from({ length: 20 }, (_, i) => makeSpanOfV1(i));
  const answer = await post(program, JSON.stringify(makeExport(spans)), JSON_TYPE);
  assert.deepEqual([answer.status, await answer.json()], [200, {}]);
  await waitForCount(program, 'trivet_prediction_trace_requests_total', 20);
  assert.equal(await readCount(program, 'trivet_prediction_observed_total\\{model="llama",target="ttft"\\}'), 20);
});

const BOMB = gzipSync(Buffer.alloc(200_000_000));

test('what is not an export is refused as google.rpc.Status, and nothing is stored', async () => {
  await using program = await startProgram(ENVIRONMENT);
  const good = toProtobuf([makeSpan(1)]);
  const refusals: [body: Uint8Array | string, headers: Record<string, string>, status: number, code: number][] = [
    [good.subarray(0, good.length - 3), PROTOBUF, 400, 3],
    [Buffer.concat([good, Buffer.from([0x0a, 0xff])]), PROTOBUF, 400, 3],
    ['{"resourceSpans": [', JSON_TYPE, 400, 3],
    ['{"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": 7}]}]}]}', JSON_TYPE, 400, 3],
    ['['.repeat(500_000), JSON_TYPE, 400, 3],
    [good, { ...PROTOBUF, 'content-encoding': 'gzip' }, 400, 3],
    [good, { ...PROTOBUF, 'content-encoding': 'br' }, 415, 3],
    [good, { 'content-type': 'text/plain' }, 415, 3],
    [gzipSync(Buffer.alloc(4_000_000, Buffer.from([0x0a, 0]))), { ...PROTOBUF, 'content-encoding': 'gzip' }, 413, 8],
    [
      gzipSync(`{"resourceSpans":[${'{},'.repeat(1_000_000)}{}]}`),
      { ...JSON_TYPE, 'content-encoding': 'gzip' },
      413,
      8,
    ],
    [BOMB, { ...PROTOBUF, 'content-encoding': 'gzip' }, 413, 8],
  ];
  for (const [body, headers, status, code] of refusals) {
    const answer = await post(program, body, headers);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const isBinary = headers['content-type']!.includes('protobuf');
    const refusal = isBinary
      ? root.lookupType('RpcStatus').decode(bytes).toJSON()
      : (JSON.parse(Buffer.from(bytes).toString()) as { code: number; message: string });
    assert.deepEqual([answer.status, refusal.code], [status, code], JSON.stringify(refusal));
    assert.match(String(refusal.message), /^(Cannot read|resourceSpans)/);
  }
  assert.equal((await post(program, Buffer.alloc(2_000_000), PROTOBUF)).status, 413, 'before it is read');
  assert.equal(await readCount(program, 'trivet_prediction_trace_requests_waiting'), 0);
});

test('a caller behind a proxy needs a token, and without the size of the caches no trace is taken', async () => {
  await using program = await startProgram();
  const proxied = await post(program, '{}', { ...JSON_TYPE, 'x-forwarded-for': '203.0.113.1' });
  assert.deepEqual([proxied.status, ((await proxied.json()) as { code: number }).code], [401, 16]);
  const answer = await post(program, '{}', JSON_TYPE);
  assert.equal(answer.status, 404);
  assert.match(await answer.text(), /PREDICTION_TRACES_KV_CAPACITY_TOKENS must say/);
});
