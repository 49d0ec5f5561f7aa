/** Every operation of the gateway: predictions, capacity, reports, traces, and the interface of llm-d. */
import type { Calls } from './calls.ts';

const INPUT = {
  inputTokenLength: 900,
  prefixCacheScore: 0.2,
  numRequestWaiting: 1,
  numRequestRunning: 8,
  kvCacheUsage: 0.4,
  inflightTokens: 4000,
  serverIp: '10.0.0.7',
};
const LLM_D_INPUT = {
  kv_cache_percentage: 0.4,
  input_token_length: 900,
  num_request_waiting: 1,
  num_request_running: 8,
  num_tokens_generated: 1,
  prefix_cache_score: 0.2,
};

export async function callPrediction({ api }: Calls): Promise<void> {
  const body = { targetModel: 'm', inputs: [INPUT] };
  await api.POST('/prediction.v1.PredictionService/Predict', { body });
  await api.POST('/hermes.prediction.v1.PredictionService/Predict', { body });
  await api.POST('/observation.v1.ObservationService/ReportBatch', { body: { events: listEvents() } });
  await api.GET('/prediction/capacity', { params: { query: { model: 'm', output_tokens: 200, ttft_ms: 1000 } } });
  await api.POST('/v1/traces', { body: { resourceSpans: [] } });
}

/** As many as a capacity needs. */
function listEvents() {
  return Array.from({ length: 200 }, (_, row) => {
    const input = { ...INPUT, numRequestRunning: row % 20, kvCacheUsage: (row % 20) / 40 };
    return { observation: { targetModel: 'm', input, ttftMillis: 100 + 5 * (row % 20), tpotMillis: 10 + (row % 20) } };
  });
}

export async function callLlmD({ api }: Calls): Promise<void> {
  const m = { params: { path: { target_model: 'm' } } };
  await api.POST('/llm-d/{target_model}/predict', { ...m, body: LLM_D_INPUT });
  await api.POST('/llm-d/{target_model}/predict/bulk', { ...m, body: { requests: [LLM_D_INPUT] } });
  await api.POST('/llm-d/{target_model}/predict/bulk/strict', { ...m, body: { requests: [LLM_D_INPUT] } });
  const entry = { ...LLM_D_INPUT, actual_ttft_ms: 120, actual_tpot_ms: 20 };
  await api.POST('/llm-d/{target_model}/add_training_data_bulk', { ...m, body: { entries: [entry] } });
  await api.GET('/llm-d/{target_model}/status', m);
  await api.GET('/llm-d/{target_model}/model/download/info', m);
  await api.GET('/llm-d/{target_model}/healthz', m);
  await api.GET('/llm-d/{target_model}/readyz', m);
}
