/** Rows as the router's client sends them; each seed has others. */
export function createRows(count: number, seed: number) {
  return Array.from({ length: count }, (_, i) => {
    const n = seed * count + i;
    return {
      kv_cache_percentage: ((n * 37) % 1000) / 1013,
      input_token_length: 1 + ((n * 7919) % 8000),
      num_request_waiting: n % 7,
      num_request_running: n % 40,
      num_tokens_generated: 1,
      prefix_cache_score: ((n * 61) % 1000) / 1009,
      encoder_input_size: 0,
      encoder_matched_size: 0,
      prefill_tokens_in_flight: (n * 131) % 30_000,
      decode_tokens_in_flight: 0,
    };
  });
}
