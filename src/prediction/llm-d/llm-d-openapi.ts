/** Describes llm-d's interface in the OpenAPI document. Their bodies are read by `read-rows.ts`, not by these schemas. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { HttpEnv } from '../../http/context.ts';
import { createRoutes } from '../../http/routes.ts';
import { MAX_COUNT } from '../schema/input-fields.ts';
import { MAX_ROWS } from './read-rows.ts';

const count = (about: string) => z.int().min(0).max(MAX_COUNT).openapi({ description: about });
const share = (about: string) => z.number().min(0).max(1).openapi({ description: about });
const milliseconds = (about: string) => z.number().min(0).openapi({ description: about });

const load = {
  kv_cache_percentage: share('Share of the KV cache in use'),
  input_token_length: count('Length of the prompt, in tokens'),
  num_request_waiting: count("Requests in the server's queue"),
  num_request_running: count('Requests that the router has in flight at the server'),
  num_tokens_generated: count('Ignored'),
  prefix_cache_score: share("Share of the prompt in the server's prefix cache"),
  pod_type: z
    .string()
    .nullable()
    .optional()
    .openapi({ description: 'Empty, "prefill", "decode" or a name of your own' }),
  prefill_tokens_in_flight: count('Added to decode_tokens_in_flight').optional(),
  decode_tokens_in_flight: count('Added to prefill_tokens_in_flight').optional(),
  encoder_input_size: count('Ignored').optional(),
  encoder_matched_size: count('Ignored').optional(),
  endpoint: z.string().optional().openapi({ description: 'The server, if the caller names it; of this service only' }),
};

const requestSchema = z.object(load).openapi('LlmDPredictionRequest');
const entrySchema = z
  .object({
    ...load,
    actual_ttft_ms: milliseconds('0 when it was not observed'),
    actual_tpot_ms: milliseconds('0 when it was not observed'),
    timestamp: z.iso.datetime().optional(),
  })
  .openapi('LlmDTrainingEntry');
const objective = {
  model_type: z.string().openapi({ example: 'lightgbm' }),
  objective_type: z.enum(['quantile', 'mean']),
  quantile: z.number(),
};
const bounds = z.array(z.number()).length(2);
const predictionSchema = z
  .object({
    ttft_ms: z.number(),
    tpot_ms: z.number(),
    ttft_uncertainty: z.number(),
    tpot_uncertainty: z.number(),
    ttft_prediction_bounds: bounds,
    tpot_prediction_bounds: bounds,
    predicted_at: z.iso.datetime(),
    ...objective,
    last_model_load: z.iso.datetime().nullable(),
  })
  .openapi('LlmDPrediction');
const totals = {
  total_requests: z.int(),
  successful_predictions: z.int(),
  failed_predictions: z.int(),
  processing_time_ms: z.number(),
};
const bulkSchema = z.object({ predictions: z.array(predictionSchema), ...totals });
const laxSchema = z.object({ predictions: z.array(predictionSchema), errors: z.array(z.object({})), ...totals });
const statusSchema = z.object({
  is_ready: z.boolean(),
  ...objective,
  last_model_load: z.iso.datetime().nullable(),
  training_server_url: z.string(),
  models_exist: z.record(z.string(), z.boolean()),
  ensemble_active: z.boolean(),
});
const infoSchema = z.object({
  ...objective,
  available_endpoints: z.object({}),
  model_status: z.record(z.string(), z.boolean()),
  evaluation_info: z.object({}),
});
const errorSchema = z
  .object({
    detail: z.union([
      z.string(),
      z.array(z.object({ loc: z.array(z.union([z.string(), z.int()])), msg: z.string(), type: z.string() })),
    ]),
  })
  .openapi('LlmDError');

const tags = ['llm-d'];
const params = z.object({ target_model: z.string().openapi({ description: 'May contain slashes' }) });
const json = (schema: z.ZodType) => ({ content: { 'application/json': { schema } } });
const refusals = (...statuses: readonly number[]) =>
  Object.fromEntries(statuses.map((status) => [status, { description: REFUSALS[status]!, ...json(errorSchema) }]));
const REFUSALS: Readonly<Record<number, string>> = {
  401: 'A token is needed',
  413: 'The body is too large',
  415: 'The content type is another one',
  422: 'The body breaks a rule; nothing of it was taken',
  503: 'Not ready, or too many large bodies at once',
};

interface PostRoute {
  readonly path: string;
  readonly summary: string;
  readonly body: z.ZodType;
  readonly answer: readonly [status: number, schema: z.ZodType];
}

const rows = (schema: z.ZodType, minimum: number) => z.array(schema).min(minimum).max(MAX_ROWS);
const POSTS: readonly PostRoute[] = [
  {
    path: '/predict',
    summary: 'Predict one row',
    body: requestSchema,
    answer: [200, predictionSchema],
  },
  {
    path: '/predict/bulk',
    summary: 'Predict many rows, with a list of those that failed',
    body: z.object({ requests: rows(requestSchema, 1) }),
    answer: [200, laxSchema],
  },
  {
    path: '/predict/bulk/strict',
    summary: 'Predict all of many rows, in their order',
    body: z.object({ requests: rows(requestSchema, 1) }),
    answer: [200, bulkSchema],
  },
  {
    path: '/add_training_data_bulk',
    summary: 'Report observed times; durable before the answer, all rows or none',
    body: z.object({ entries: rows(entrySchema, 0) }),
    answer: [202, z.object({ message: z.string() })],
  },
];

const GETS: readonly [path: string, summary: string, answer: z.ZodType][] = [
  ['/status', 'What answers predictions', statusSchema],
  ['/model/download/info', 'What was learned', infoSchema],
  ['/healthz', 'Whether the process runs', z.object({ status: z.string() })],
  ['/readyz', 'Whether predictions are answered', z.object({ status: z.string(), ...objective })],
];

/** Routes without handlers: the endpoints of the mount answer. */
export function describeLlmD(): OpenAPIHono<HttpEnv> {
  const routes = createRoutes();
  for (const { path, summary, body, answer } of POSTS)
    routes.openAPIRegistry.registerPath({
      method: 'post',
      path: `/{target_model}${path}`,
      summary,
      tags,
      request: { params, body: { required: true, ...json(body) } },
      responses: { [answer[0]]: { description: 'Done', ...json(answer[1]) }, ...refusals(401, 413, 415, 422, 503) },
    });
  for (const [path, summary, answer] of GETS)
    routes.openAPIRegistry.registerPath({
      method: 'get',
      path: `/{target_model}${path}`,
      summary,
      tags,
      request: { params },
      responses: { 200: { description: 'Done', ...json(answer) }, ...refusals(401, 503) },
    });
  return routes;
}
