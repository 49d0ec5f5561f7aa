/** The published interface: names, numbers and types of the prediction messages, and the one method. */
export const CONTRACT_MESSAGES: Readonly<Record<string, readonly string[]>> = {
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

/** The same as a proto file, for tools that compare proto files. */
export function writeContractProto(): string {
  const messages = Object.entries(CONTRACT_MESSAGES).map(
    ([name, fields]) => `message ${name} {\n${fields.map((field) => `  ${writeField(field)}`).join('\n')}\n}`,
  );
  const service = 'service PredictionService {\n  rpc Predict(PredictRequest) returns (PredictResponse);\n}';
  return ['syntax = "proto3";', 'package prediction.v1;', ...messages, service].join('\n\n');
}

function writeField(field: string): string {
  const [number, name, ...type] = field.split(' ');
  return `${type.join(' ')} ${name} = ${number};`;
}
