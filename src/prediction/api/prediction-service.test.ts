import assert from 'node:assert/strict';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';
import type { RawClient } from '../../../test/support/grpc/grpc-client.ts';
import {
  decodeMessage,
  encodeMessage,
  PredictRequest,
  PredictResponse,
} from '../../../test/support/grpc/proto-messages.ts';
import { PATH, type PredictAnswer, usePredictServers } from '../../../test/support/prediction/predict-servers.ts';

const servers = usePredictServers();

/** Answers with numbers from which the test can tell which row it saw. */
async function predict(request: object, from: RawClient = servers().client): Promise<PredictAnswer> {
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
  await assert.rejects(servers().client.unary(PATH, Buffer.from('0a05616263', 'hex')), {
    code: status.INVALID_ARGUMENT,
  });
});

test('an unknown target model is answered from the prior', async () => {
  const answer = await predict({ targetModel: 'unheard-of', inputs: [{}] });
  assert.deepEqual(answer.metadata, { targetModel: 'unheard-of', modelVersion: 'prior@1', omittedInputs: 0 });
});

test('an unknown target model is NOT_FOUND where the configuration rejects it', async () => {
  await assert.rejects(predict({ targetModel: 'unheard-of', inputs: [{}] }, servers().strictClient), {
    code: status.NOT_FOUND,
  });
  assert.equal((await predict({ targetModel: 'known', inputs: [{}] }, servers().strictClient)).outputs.length, 1);
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

test('large calls for two models in turn are each answered for their own', async () => {
  const inputs = Array.from({ length: 2000 }, (_, inputId) => ({ inputId, serverIp: `10.0.${inputId}` }));
  for (const targetModel of ['known', 'other', 'known', 'other']) {
    const { metadata } = await predict({ targetModel, inputs });
    const modelVersion = targetModel === 'known' ? 'known@3' : 'prior@1';
    assert.deepEqual(metadata, { targetModel, modelVersion, omittedInputs: 0 });
  }
});

test('the time of a call is measured', async () => {
  await predict({ targetModel: 'known' });
  assert.match(await servers().metrics.metrics(), /trivet_predict_duration_seconds_count [1-9]/);
});
