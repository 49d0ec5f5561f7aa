/** The one name of each input of a prediction, on every page. */
export const inputTexts = {
  pod_type: 'Pod type',
  input_token_length: 'Prompt tokens',
  prefix_cache_score: 'Share of the prompt in the prefix cache',
  num_request_waiting: 'Requests waiting',
  num_request_running: 'Requests running',
  kv_cache_usage: 'KV cache in use',
  inflight_tokens: 'Tokens in flight',
  hbm_utilization: 'Accelerator memory in use',
  ai_core_utilization: 'Compute cores in use',
  bandwidth_utilization: 'Memory bandwidth in use',
  server_ip: 'Server',
} as const;
