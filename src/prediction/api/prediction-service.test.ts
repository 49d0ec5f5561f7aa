import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import { connectRaw, type RawClient } from '../../../test/support/grpc-client.ts';
import { decodeMessage, encodeMessage, PredictRequest, PredictResponse } from '../../../test/support/proto-messages.ts';
import { type GrpcServer, openGrpcServer } from '../../grpc/listener/server.ts';
import { createHttpApp } from '../../http/http-app.ts';
import { type HttpServer, listenHttp } from '../../http/http-server.ts';
import { createLog } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { realWorld } from '../../world.ts';
import type { Predictor } from '../schema/columns.ts';
import { createPredictRoutes } from './predict-routes.ts';
import { createPredictionService } from './prediction-service.ts';

/** Answers with numbers from which the test can tell which row it saw. */
const predictor: Predictor = {
  hasModel: (targetModel) => targetModel === 'known',
  predict: (targetModel, columns, predicted) => {
    for (let row = 0; row < columns.count; row++) {
      predicted.ttftMs[row] = columns.inputTokenLength[row]! + columns.kvCacheUsage[row]!;
      predicted.tpotMs[row] = columns.podTypes[columns.podType[row]!]!.length;
    }
    return targetModel === 'known' ? 'known@3' : 'prior@1';
  },
};

interface Answer {
  outputs: { inputId: number; serverIp: string; predictedTtftMillis: number; predictedTpotMillis: number }[];
  metadata: { targetModel: string; modelVersion: string; omittedInputs: number };
}

const metrics = createMetrics();
const service = createPredictionService({ predictor, unknownModel: 'prior', metrics, world: realWorld });
const strict = createPredictionService({
  predictor,
  unknownModel: 'reject',
  metrics: createMetrics(),
  world: realWorld,
});
const log = createLog('silent');

let grpc: GrpcServer;
let strictGrpc: GrpcServer;
let client: RawClient;
let strictClient: RawClient;
let http: HttpServer;

before(async () => {
  const common = { host: '127.0.0.1', port: 0, maxMessageBytes: 4_194_304, log, world: realWorld };
  grpc = await openGrpcServer({ ...common, services: service.grpc, metrics });
  strictGrpc = await openGrpcServer({ ...common, services: strict.grpc, metrics: createMetrics() });
  client = connectRaw(`127.0.0.1:${grpc.port}`);
  strictClient = connectRaw(`127.0.0.1:${strictGrpc.port}`);
  http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const verifyToken = () => Promise.resolve(undefined);
  const mounts = (['auto', 'on'] as const).map((mode) => ({
    path: mode === 'auto' ? '/prediction.v1.PredictionService' : '/guarded',
    errors: 'rpc' as const,
    routes: createPredictRoutes(service, { mode, verifyToken }),
  }));
  const app = createHttpApp({ mounts, log, metrics, world: realWorld, maxBodyBytes: 1e6, checkReady: async () => {} });
  http.serve(app);
});

after(async () => {
  client[Symbol.dispose]();
  strictClient[Symbol.dispose]();
  await Promise.all([grpc.drain(1000), strictGrpc.drain(1000), http.drain(1000)]);
});

const PATH = '/prediction.v1.PredictionService/Predict';

async function predict(request: object, from: RawClient = client): Promise<Answer> {
  return decodeMessage(PredictResponse, await from.unary(PATH, encodeMessage(PredictRequest, request)));
}

test('an output carries the input_id and server_ip of its input, in the order of the inputs', async () => {
  const inputs = [
    { inputId: 7, serverIp: '10.0.0.1', inputTokenLength: 100, kvCacheUsage: 0.5, podType: 'decode' },
    { inputId: -1, serverIp: 'größe.example', inputTokenLength: 50 },
    { inputId: 0, serverIp: '', inputTokenLength: 25, podType: 'prefill' },
  ];
  const answer = await predict({ targetModel: 'known', inputs });
  assert.deepEqual(answer.outputs, [
    { inputId: 7, serverIp: '10.0.0.1', predictedTtftMillis: 100.5, predictedTpotMillis: 6 },
    { inputId: -1, serverIp: 'größe.example', predictedTtftMillis: 50, predictedTpotMillis: 0 },
    { inputId: 0, serverIp: '', predictedTtftMillis: 25, predictedTpotMillis: 7 },
  ]);
  assert.deepEqual(answer.metadata, { targetModel: 'known', modelVersion: 'known@3', omittedInputs: 0 });
});

test('inputs that are the same are each answered', async () => {
  const input = { inputId: 1, serverIp: '10.0.0.1' };
  const answer = await predict({ targetModel: 'known', inputs: [input, input, input] });
  assert.deepEqual(
    answer.outputs.map((output) => output.inputId),
    [1, 1, 1],
  );
});

const METRICS = [
  'inputTokenLength',
  'prefixCacheScore',
  'numRequestWaiting',
  'numRequestRunning',
  'kvCacheUsage',
  'inflightTokens',
  'hbmUtilization',
  'aiCoreUtilization',
  'bandwidthUtilization',
];
const isDouble = (name: string) => /Score|Usage|Utilization/.test(name);
for (const name of METRICS)
  test(`an input whose ${name} no server can have is left out and counted`, async () => {
    const wrong = isDouble(name) ? [-0.1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY] : [-1];
    const bad = wrong.map((value) => ({ inputId: 9, podType: 'x', serverIp: 'bad', [name]: value }));
    const inputs = [{ inputId: 1, serverIp: 'a' }, ...bad, { inputId: 2, serverIp: 'b', inputTokenLength: 5 }];
    const answer = await predict({ targetModel: 'known', inputs });
    assert.deepEqual(answer.outputs, [
      { inputId: 1, serverIp: 'a', predictedTtftMillis: 0, predictedTpotMillis: 0 },
      { inputId: 2, serverIp: 'b', predictedTtftMillis: 5, predictedTpotMillis: 0 },
    ]);
    assert.equal(answer.metadata.omittedInputs, wrong.length);
  });

test('a negative input_id is the business of the caller', async () => {
  const answer = await predict({ targetModel: 'known', inputs: [{ inputId: -5 }] });
  assert.equal(answer.outputs[0]?.inputId, -5);
});

test('metrics beyond the recommended range are taken as they are', async () => {
  const answer = await predict({ targetModel: 'known', inputs: [{ kvCacheUsage: 97.5 }] });
  assert.equal(answer.outputs[0]?.predictedTtftMillis, 97.5);
});

test('no inputs get an empty answer, and so do inputs that are all left out', async () => {
  const metadata = { targetModel: 'known', modelVersion: 'known@3', omittedInputs: 0 };
  assert.deepEqual(await predict({ targetModel: 'known' }), { outputs: [], metadata });
  const answer = await predict({ targetModel: 'known', inputs: [{ inflightTokens: -1 }] });
  assert.deepEqual(answer, { outputs: [], metadata: { ...metadata, omittedInputs: 1 } });
});

test('an empty target model is INVALID_ARGUMENT', async () => {
  await assert.rejects(predict({ inputs: [{}] }), {
    code: status.INVALID_ARGUMENT,
    details: 'Cannot predict: target_model must not be empty',
  });
});

test('4,096 inputs are answered, one more is INVALID_ARGUMENT that names the limit', async () => {
  const inputs = Array.from({ length: 4096 }, (_, inputId) => ({ inputId, serverIp: `10.0.${inputId}` }));
  const answer = await predict({ targetModel: 'known', inputs });
  assert.ok(answer.outputs.every((output, index) => output.inputId === index && output.serverIp === `10.0.${index}`));
  await assert.rejects(predict({ targetModel: 'known', inputs: [...inputs, {}] }), {
    code: status.INVALID_ARGUMENT,
    details: 'Cannot predict: inputs must be at most 4,096, got more',
  });
});

test('bytes that are no PredictRequest are INVALID_ARGUMENT', async () => {
  await assert.rejects(client.unary(PATH, Buffer.from('0a05616263', 'hex')), { code: status.INVALID_ARGUMENT });
});

test('an unknown target model is answered from the prior', async () => {
  const answer = await predict({ targetModel: 'unheard-of', inputs: [{}] });
  assert.deepEqual(answer.metadata, { targetModel: 'unheard-of', modelVersion: 'prior@1', omittedInputs: 0 });
});

test('an unknown target model is NOT_FOUND where the configuration rejects it', async () => {
  await assert.rejects(predict({ targetModel: 'unheard-of', inputs: [{}] }, strictClient), { code: status.NOT_FOUND });
  assert.equal((await predict({ targetModel: 'known', inputs: [{}] }, strictClient)).outputs.length, 1);
});

test('calls that overlap get each its own answer', async () => {
  const requests = Array.from({ length: 300 }, (_, index) => ({
    targetModel: 'known',
    inputs: Array.from({ length: 1 + (index % 7) }, () => ({ inputId: index, serverIp: `ip-${index}` })),
  }));
  const answers = await Promise.all(requests.map((request) => predict(request)));
  for (const [index, answer] of answers.entries()) {
    assert.equal(answer.outputs.length, 1 + (index % 7));
    assert.ok(answer.outputs.every((output) => output.inputId === index && output.serverIp === `ip-${index}`));
  }
});

test('the time of a call is measured', async () => {
  await predict({ targetModel: 'known' });
  assert.match(await metrics.metrics(), /trivet_predict_duration_seconds_count [1-9]/);
});

function post(body: string, headers: Record<string, string> = {}, path = PATH): Promise<Response> {
  const defaults = { 'content-type': 'application/json' };
  return fetch(`${http.url}${path}`, { method: 'POST', body, headers: { ...defaults, ...headers } });
}

test('the same call is answered as JSON over HTTP, with the names of the fields in either spelling', async () => {
  const request = {
    target_model: 'known',
    inputs: [
      { input_id: 1, pod_type: 'decode', input_token_length: '1e2', kv_cache_usage: 0.25, server_ip: 'größe' },
      { inputId: '2', podType: 'prefill', inputTokenLength: 10.0, kvCacheUsage: '0.5', serverIp: null },
      { inputId: 3, hbmUtilization: 'NaN' },
      { inputId: 4, aiCoreUtilization: '-Infinity' },
      null,
    ],
  };
  const response = await post(JSON.stringify(request));
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
  assert.deepEqual(await response.json(), {
    outputs: [
      { inputId: 1, serverIp: 'größe', predictedTtftMillis: 100.25, predictedTpotMillis: 6 },
      { inputId: 2, serverIp: '', predictedTtftMillis: 10.5, predictedTpotMillis: 7 },
      { inputId: 0, serverIp: '', predictedTtftMillis: 0, predictedTpotMillis: 0 },
    ],
    metadata: { targetModel: 'known', modelVersion: 'known@3', omittedInputs: 2 },
  });
});

const refusedJson: [why: string, body: string, message: RegExp][] = [
  ['the body is not JSON', '{', /the body must be JSON/],
  ['the request is not an object', '[]', /request must be an object, got \[\]/],
  ['there is no such field', '{"targetModl":"x"}', /there is no field "targetModl"/],
  ['an input has no such field', '{"targetModel":"x","inputs":[{"ip":"x"}]}', /there is no field "inputs\[0\]\.ip"/],
  ['inputs is not an array', '{"targetModel":"x","inputs":{}}', /inputs must be an array/],
  ['an int32 has a fraction', '{"targetModel":"x","inputs":[{"inputId":1.5}]}', /inputs\[0\]\.inputId must be a whole/],
  ['an int32 is out of range', '{"targetModel":"x","inputs":[{"inputId":2147483648}]}', /must be a whole number of 32/],
  ['a double is a word', '{"targetModel":"x","inputs":[{"kv_cache_usage":"high"}]}', /must be a number, got "high"/],
  ['a string is a number', '{"targetModel":5}', /targetModel must be a string, got 5/],
  ['a string is not well-formed', '{"targetModel":"\\ud800"}', /targetModel must be a string/],
  ['the target model is empty', '{}', /target_model must not be empty/],
  [
    'a number is beyond a double',
    '{"targetModel":"x","inputs":[{"kvCacheUsage":-1e400}]}',
    /kvCacheUsage must be a number of 64 bits, got -1e400$/,
  ],
  ['a field is named like what every object has', '{"targetModel":"x","constructor":{}}', /no field "constructor"/],
];
for (const [why, body, message] of refusedJson)
  test(`JSON is refused when ${why}`, async () => {
    const response = await post(body);
    assert.equal(response.status, 400);
    const error = (await response.json()) as { code: string; message: string };
    assert.equal(error.code, 'invalid_argument');
    assert.match(error.message, message);
  });

test('JSON that is not UTF-8 is refused', async () => {
  for (const body of [Buffer.from('{"targetModel":"\xff"}', 'latin1'), Buffer.from('\ufeff{}', 'utf16le')]) {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(http.url + PATH, { method: 'POST', body, headers });
    assert.equal(response.status, 400);
    assert.match(((await response.json()) as { message: string }).message, /the body must be UTF-8/);
  }
});

test('a compressed body is unimplemented, as the Connect protocol has it, in both encodings of messages', async () => {
  for (const type of ['application/json', 'application/proto']) {
    const headers = { 'content-type': type, 'content-encoding': 'gzip' };
    const body = gzipSync('{"targetModel":"known"}');
    const response = await fetch(http.url + PATH, { method: 'POST', body, headers });
    assert.equal(response.status, 501);
    assert.deepEqual(await response.json(), {
      code: 'unimplemented',
      message: 'Cannot read the request: Content-Encoding must be identity, got "gzip"',
    });
  }
  assert.equal((await post('{"targetModel":"known"}', { 'content-encoding': 'identity' })).status, 200);
});

test('a method that does not exist is unimplemented, and so is GET', async () => {
  const unknown = await post('{}', {}, `${PATH}ed`);
  assert.equal(unknown.status, 404);
  assert.equal(((await unknown.json()) as { code: string }).code, 'unimplemented');
  const got = await fetch(http.url + PATH);
  assert.deepEqual([got.status, got.headers.get('allow')], [405, 'POST']);
  assert.equal(((await got.json()) as { code: string }).code, 'unimplemented');
});

test('other content types are refused', async () => {
  const response = await post('{}', { 'content-type': 'text/plain' });
  assert.equal(response.status, 415);
});

test('the same bytes as over gRPC may be posted too', async () => {
  const body = encodeMessage(PredictRequest, { targetModel: 'known', inputs: [{ inputId: 5, serverIp: 'a' }] });
  const headers = { 'content-type': 'application/proto' };
  const response = await fetch(`${http.url}${PATH}`, { method: 'POST', body, headers });
  const answer = decodeMessage<Answer>(PredictResponse, new Uint8Array(await response.arrayBuffer()));
  assert.equal(answer.outputs[0]?.inputId, 5);
  assert.equal(response.headers.get('content-type'), 'application/proto');
});

test('a caller over HTTP needs a token where one over gRPC would', async () => {
  const body = '{"targetModel":"known"}';
  assert.equal((await post(body)).status, 200);
  const proxied = await post(body, { 'x-forwarded-for': '203.0.113.7' });
  assert.equal(proxied.status, 401);
  assert.equal(((await proxied.json()) as { code: string }).code, 'unauthenticated');
  assert.equal((await post(body, { authorization: 'Bearer bad' }, '/guarded/Predict')).status, 401);
});
