/** Lists the settings of prediction: callers, unknown models, training, scraping, headroom, traces, llm-d. */
import { choice, flag, integer, optional, setting, text } from './setting.ts';

export const predictionSettings = {
  auth: setting({
    env: 'PREDICTION_AUTH',
    about:
      'Who may call the prediction service: `auto` asks for a bearer token (scope `predict` or `observe`, or any that is not narrow) unless the caller is on loopback or a unix socket, `on` always asks, `off` never.',
    schema: choice('auto', 'on', 'off'),
    fallback: 'auto',
  }),
  unknownModel: setting({
    env: 'PREDICTION_UNKNOWN_MODEL',
    about:
      'What to do for a target model that has no trained version: `prior` answers from the prior, `reject` answers NOT_FOUND.',
    schema: choice('prior', 'reject'),
    fallback: 'prior',
  }),
  learning: setting({
    env: 'PREDICTION_LEARNING',
    about: 'Whether this process retrains models from reports. Reports are kept either way.',
    schema: flag,
    fallback: 'true',
  }),
  refitRows: setting({
    env: 'PREDICTION_REFIT_ROWS',
    about: 'New samples after which a model is trained again. Its first training comes at 50.',
    schema: integer(50, 1_000_000),
    fallback: '1000',
  }),
  refitSeconds: setting({
    env: 'PREDICTION_REFIT_SECONDS',
    about: 'Seconds after which a model is trained again if at least 50 new samples have arrived.',
    schema: integer(1, 86_400),
    fallback: '300',
  }),
  scrape: optional({
    env: 'PREDICTION_SCRAPE',
    about:
      'Servers whose load this process scrapes, for rows that have none: `http://host:port/metrics` or `NAME=http://host:port/metrics` with commas between them, or the path of a file that has them. NAME is what callers send as server_ip; without it, the address is the name.',
    schema: text,
  }),
  scrapeIntervalMs: setting({
    env: 'PREDICTION_SCRAPE_INTERVAL_MS',
    about: 'How long to wait between two scrapes of all servers, in milliseconds.',
    schema: integer(50, 60_000),
    fallback: '500',
  }),
  scrapeTimeoutMs: setting({
    env: 'PREDICTION_SCRAPE_TIMEOUT_MS',
    about: 'How long a scrape of one server may take, in milliseconds.',
    schema: integer(50, 60_000),
    fallback: '1000',
  }),
  scrapeStaleMs: setting({
    env: 'PREDICTION_SCRAPE_STALE_MS',
    about: 'How old scraped numbers may be, in milliseconds. Rows that need older ones are omitted from the answer.',
    schema: integer(100, 600_000),
    fallback: '5000',
  }),
  headroomTtftMs: optional({
    env: 'PREDICTION_HEADROOM_TTFT_MS',
    about:
      'Limit of TTFT, in milliseconds, by which the headroom of each server is computed for autoscalers. With it or the limit of TPOT, `/metrics` has `trivet_prediction_headroom_requests`.',
    schema: integer(1, 86_400_000),
  }),
  headroomTpotMs: optional({
    env: 'PREDICTION_HEADROOM_TPOT_MS',
    about: 'Limit of TPOT for the headroom, in milliseconds.',
    schema: integer(1, 86_400_000),
  }),
  headroomPercent: setting({
    env: 'PREDICTION_HEADROOM_PERCENT',
    about: 'Percent of the requests that must stay below these limits.',
    schema: integer(50, 99),
    fallback: '90',
  }),
  headroomOutputTokens: setting({
    env: 'PREDICTION_HEADROOM_OUTPUT_TOKENS',
    about: 'Mean length of an answer, in tokens, for the headroom.',
    schema: integer(1, 1_000_000),
    fallback: '200',
  }),
  tracesKvCapacityTokens: optional({
    env: 'PREDICTION_TRACES_KV_CAPACITY_TOKENS',
    about:
      'Tokens that the KV cache of one vLLM server holds, by which the load at each request of a trace is worked out. `POST /v1/traces` takes spans only with it.',
    schema: integer(1, 2_147_483_647),
  }),
  tracesModel: optional({
    env: 'PREDICTION_TRACES_MODEL',
    about:
      'Target model of spans that name none, as those of V1 of vLLM: neither they nor their resource have `gen_ai.response.model` or `gen_ai.request.model`.',
    schema: text.refine((value) => Buffer.byteLength(value) <= 256, 'must have at most 256 bytes'),
  }),
  tracesHoldSeconds: setting({
    env: 'PREDICTION_TRACES_HOLD_SECONDS',
    about:
      'How long after its start a request of a trace is learned, in seconds. Requests that take longer do not count as load of those that started after them. A span is rejected if its request ended longer ago than half of this time, and more than 10 s ago.',
    schema: integer(1, 3600),
    fallback: '120',
  }),
  llmDPort: optional({
    env: 'LLM_D_PORT',
    about:
      'Port on which the predictor interface of llm-d, the Gateway API Inference Extension and KServe is served at the root, for the target model in LLM_D_MODEL; 0 takes any free port and prints it. Below `/llm-d/{target_model}` it is served on the HTTP port as well.',
    schema: integer(0, 65535),
  }),
  llmDModel: optional({
    env: 'LLM_D_MODEL',
    about: 'Target model of that port.',
    // As in `prediction/llm-d/training-row-store.ts`.
    schema: text.refine((value) => Buffer.byteLength(value) <= 245, 'must have at most 245 bytes'),
  }),
  llmDObjective: setting({
    env: 'LLM_D_OBJECTIVE',
    about: 'What the times in answers of that interface are: a `quantile` of those to expect, or their `mean`.',
    schema: choice('quantile', 'mean'),
    fallback: 'quantile',
  }),
  llmDQuantile: setting({
    env: 'LLM_D_QUANTILE',
    about: 'Which quantile: 0.5, 0.9, 0.95 or 0.99.',
    schema: choice('0.5', '0.9', '0.95', '0.99'),
    fallback: '0.9',
  }),
} as const;
