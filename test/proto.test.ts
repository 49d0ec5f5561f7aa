import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Field } from 'protobufjs';
import { messageType } from './support/proto-messages.ts';

/** The published interface: names, numbers and types of the prediction messages. */
const CONTRACT: Record<string, string[]> = {
  PredictInput: [
    '1 input_id int32',
    '2 pod_type string',
    '3 input_token_length int32',
    '4 prefix_cache_score double',
    '5 num_request_waiting int32',
    '6 num_request_running int32',
    '7 kv_cache_usage double',
    '8 inflight_tokens int32',
    '9 hbm_utilization double',
    '10 ai_core_utilization double',
    '11 bandwidth_utilization double',
    '12 server_ip string',
  ],
  PredictOutput: [
    '1 input_id int32',
    '2 server_ip string',
    '3 predicted_ttft_millis double',
    '4 predicted_tpot_millis double',
  ],
  PredictRequest: ['1 target_model string', '2 inputs repeated PredictInput'],
  ResponseMetadata: ['1 target_model string', '2 model_version string', '3 omitted_inputs int32'],
  PredictResponse: ['1 outputs repeated PredictOutput', '2 metadata ResponseMetadata'],
};

function describe(field: Field): string {
  const name = field.name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return `${field.id} ${name} ${field.repeated ? 'repeated ' : ''}${field.type}`;
}

for (const [name, fields] of Object.entries(CONTRACT))
  test(`prediction.v1.${name} has the fields of the published interface and no others`, () => {
    const type = messageType(`prediction.v1.${name}`);
    assert.deepEqual(type.fieldsArray.toSorted((left, right) => left.id - right.id).map(describe), fields);
  });

test('the proto files pass buf lint', () => {
  execFileSync('node_modules/.bin/buf', ['lint'], { stdio: 'pipe' });
});

test('the compiled descriptors are those of the proto files: run "npm run proto" after a change', () => {
  const built = execFileSync('node_modules/.bin/buf', ['build', '--exclude-source-info', '-o', '-#format=binpb']);
  assert.ok(built.equals(readFileSync('src/gen/descriptors.binpb')));
});
