/** A client of hermes-router: its service name, over the unix socket that it dials, against the running program. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import protobuf from 'protobufjs';
import { connectRaw } from '../support/grpc/grpc-client.ts';
import { decodeMessage, encodeMessage, PredictRequest, PredictResponse } from '../support/grpc/proto-messages.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';

const SERVICE = 'hermes.prediction.v1.PredictionService';
const REQUEST = { targetModel: 'qwen3-32b', inputs: [{ inputId: 7, serverIp: '10.0.0.1', inputTokenLength: 900 }] };

interface Answer {
  readonly outputs: readonly { readonly inputId: number; readonly predictedTtftMillis: number }[];
  readonly metadata: { readonly modelVersion: string };
}

test('the service answers under the name of hermes-router, over a unix socket, with health and as JSON', async () => {
  const dataDir = createDataDir();
  const socket = join(dataDir, 'prediction.sock');
  await using program = await startProgram({ GRPC_UNIX_SOCKET: socket }, dataDir);
  using client = connectRaw(`unix://${socket}`);

  const bytes = encodeMessage(PredictRequest, REQUEST);
  const answer = decodeMessage<Answer>(PredictResponse, await client.unary(`/${SERVICE}/Predict`, bytes));
  const contract = await client.unary('/prediction.v1.PredictionService/Predict', bytes);
  assert.deepEqual(decodeMessage<Answer>(PredictResponse, contract), answer);
  assert.equal(answer.outputs[0]?.inputId, 7);
  assert.ok((answer.outputs[0]?.predictedTtftMillis ?? 0) > 0);

  const health = protobuf.loadSync('proto/grpc/health/v1/health.proto');
  const question = encodeMessage(health.lookupType('grpc.health.v1.HealthCheckRequest'), { service: SERVICE });
  const state = await client.unary('/grpc.health.v1.Health/Check', question);
  const Checked = health.lookupType('grpc.health.v1.HealthCheckResponse');
  assert.equal(Checked.toObject(Checked.decode(state), { enums: String }).status, 'SERVING');

  const json = await fetch(`${program.httpUrl}/${SERVICE}/Predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(REQUEST),
  });
  assert.deepEqual(((await json.json()) as Answer).outputs, answer.outputs);
});
