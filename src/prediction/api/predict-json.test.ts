/** Predict as JSON and bytes over HTTP, as the Connect protocol has it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  decodeMessage,
  encodeMessage,
  PredictRequest,
  PredictResponse,
} from '../../../test/support/grpc/proto-messages.ts';
import { PATH, type PredictAnswer, usePredictServers } from '../../../test/support/prediction/predict-servers.ts';

const servers = usePredictServers();

function post(body: string, headers: Record<string, string> = {}, path = PATH): Promise<Response> {
  const defaults = { 'content-type': 'application/json' };
  return fetch(`${servers().httpUrl}${path}`, { method: 'POST', body, headers: { ...defaults, ...headers } });
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

test('the name of an unknown field is shown, of a long one its beginning', async () => {
  const response = await post(`{"${'é'.repeat(100_000)}":1}`);
  const { message } = (await response.json()) as { message: string };
  assert.match(message, /^Cannot read the message: there is no field "é{100,}…$/);
  assert.ok(message.length <= 2001, `${message.length} characters`);
});

test('JSON that is not UTF-8 is refused', async () => {
  for (const body of [Buffer.from('{"targetModel":"\xff"}', 'latin1'), Buffer.from('\ufeff{}', 'utf16le')]) {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(servers().httpUrl + PATH, { method: 'POST', body, headers });
    assert.equal(response.status, 400);
    assert.match(((await response.json()) as { message: string }).message, /the body must be UTF-8/);
  }
});

test('a compressed body is unimplemented, as the Connect protocol has it, in both encodings of messages', async () => {
  for (const type of ['application/json', 'application/proto']) {
    const headers = { 'content-type': type, 'content-encoding': 'gzip' };
    const body = gzipSync('{"targetModel":"known"}');
    const response = await fetch(servers().httpUrl + PATH, { method: 'POST', body, headers });
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
  const got = await fetch(servers().httpUrl + PATH);
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
  const response = await fetch(`${servers().httpUrl}${PATH}`, { method: 'POST', body, headers });
  const answer = decodeMessage<PredictAnswer>(PredictResponse, new Uint8Array(await response.arrayBuffer()));
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
