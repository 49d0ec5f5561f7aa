/** Predict and ReportBatch in the OpenAPI document. Their bodies are read by the JSON mapping of proto3, not by these. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { HttpEnv } from '../../http/context.ts';

const count = (about: string) => z.int().min(0).openapi({ description: about });
const share = (about: string) =>
  z
    .number()
    .min(0)
    .openapi({ description: `${about}, recommended 0 to 1` });

const inputSchema = z
  .object({
    inputId: z.int().openapi({ description: 'Chosen by the caller, comes back in the output' }),
    podType: z.string().openapi({ description: 'Empty or "aggregate", "prefill", "decode", or a name of your own' }),
    inputTokenLength: count('Length of the prompt, in tokens'),
    prefixCacheScore: share("Share of the prompt in the server's prefix cache"),
    numRequestWaiting: count("Requests in the server's queue"),
    numRequestRunning: count("Requests in the server's batch"),
    kvCacheUsage: share('Share of the KV cache in use'),
    inflightTokens: count('Tokens of requests sent to the server and not finished'),
    hbmUtilization: share("Share of the accelerator's memory in use"),
    aiCoreUtilization: share('Share of time in which the compute cores are busy'),
    bandwidthUtilization: share('Share of the memory bandwidth in use'),
    serverIp: z.string().openapi({ description: 'Address of the server, comes back in the output' }),
  })
  .partial()
  .openapi('PredictInput');

const requestSchema = z
  .object({ targetModel: z.string().min(1), inputs: z.array(inputSchema).max(4096).optional() })
  .openapi('PredictRequest');

const responseSchema = z
  .object({
    outputs: z.array(
      z.object({
        inputId: z.int(),
        serverIp: z.string(),
        predictedTtftMillis: z.number(),
        predictedTpotMillis: z.number(),
      }),
    ),
    metadata: z.object({ targetModel: z.string(), modelVersion: z.string(), omittedInputs: z.int() }),
  })
  .openapi('PredictResponse');

const rpcErrorSchema = z
  .object({ code: z.string().openapi({ example: 'invalid_argument' }), message: z.string() })
  .openapi('RpcError');

const at = z.iso.datetime().optional();
const requestId = z.string().min(1).max(256);
const millis = z.number().positive();
const eventSchema = z
  .object({
    dispatched: z.object({ requestId, targetModel: z.string().min(1), input: inputSchema, at }),
    firstToken: z.object({ requestId, ttftMillis: millis, at }),
    finished: z.object({ requestId, tpotMillis: millis.optional(), outputTokens: z.int().min(0).optional(), at }),
    observation: z.object({
      requestId: requestId.optional(),
      targetModel: z.string().min(1),
      input: inputSchema,
      at,
      ttftMillis: millis.optional(),
      tpotMillis: millis.optional(),
      outputTokens: z.int().min(0).optional(),
    }),
  })
  .partial()
  .openapi('ReportedEvent', { description: 'Exactly one of the four' });

const batchSchema = z.object({ events: z.array(eventSchema).max(10_000) }).openapi('ReportBatchRequest');

const reportSchema = z
  .object({
    accepted: z.int(),
    refused: z.int(),
    refusals: z.array(z.object({ index: z.int(), requestId: z.string(), reason: z.string() })),
  })
  .openapi('ReportResponse');

const errors = Object.fromEntries(
  [
    [400, 'The request can not be read, or breaks a rule'],
    [401, 'A token is needed'],
    [404, 'Nothing was learned about the model, and the configuration refuses such'],
    [415, 'The content type is another one'],
  ].map(([status, description]) => [
    status,
    { description: String(description), content: { 'application/json': { schema: rpcErrorSchema } } },
  ]),
);
const tags = ['Prediction'];

export function describePredict(routes: OpenAPIHono<HttpEnv>): void {
  routes.openAPIRegistry.registerPath({
    method: 'post',
    path: '/Predict',
    summary: 'Time to first token and time per output token, for each candidate server',
    tags,
    request: { body: { required: true, content: { 'application/json': { schema: requestSchema } } } },
    responses: {
      200: { description: 'The predictions', content: { 'application/json': { schema: responseSchema } } },
      ...errors,
    },
  });
}

export function describeReportBatch(routes: OpenAPIHono<HttpEnv>): void {
  const lines = z.string().openapi({ description: 'One event in JSON a line' });
  routes.openAPIRegistry.registerPath({
    method: 'post',
    path: '/ReportBatch',
    summary: 'Report what really happened',
    tags,
    request: {
      body: {
        required: true,
        content: { 'application/json': { schema: batchSchema }, 'application/jsonl': { schema: lines } },
      },
    },
    responses: {
      200: { description: 'What was taken, durably', content: { 'application/json': { schema: reportSchema } } },
      ...errors,
    },
  });
}
