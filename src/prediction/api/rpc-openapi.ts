/** Describes Predict and ReportBatch in the OpenAPI document. The JSON mapping of proto3 reads their bodies, not these schemas. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { toCamelCase } from '../../grpc/protobuf/json.ts';
import type { HttpEnv } from '../../http/context.ts';
import { INPUT_FIELDS, type InputField } from '../schema/input-fields.ts';

const UNIT_WORDS: Readonly<Partial<Record<InputField['unit'], string>>> = {
  share: ', recommended 0 to 1',
  tokens: ', in tokens',
};

const inputSchema = z
  .object(Object.fromEntries(INPUT_FIELDS.map((field) => [toCamelCase(field.name), describeField(field)])))
  .partial()
  .openapi('PredictInput');

function describeField({ kind, of, meaning, unit }: InputField): z.ZodType {
  const about = `${meaning.charAt(0).toUpperCase()}${meaning.slice(1).replaceAll('`', '"')}`;
  const description = `${about}${UNIT_WORDS[unit] ?? ''}`;
  if (kind === 'string') return z.string().openapi({ description });
  const number = kind === 'int32' ? z.int() : z.number();
  return (of === 'call' ? number : number.min(0)).openapi({ description });
}

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

function describeError(description: string) {
  return { description, content: { 'application/json': { schema: rpcErrorSchema } } };
}

const errors = {
  400: describeError('The request cannot be read, or breaks a rule'),
  401: describeError('A token is needed'),
  415: describeError('The content type is another one'),
};
const unknownModel = describeError('Nothing was learned about the model, and the configuration refuses such');
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
      404: unknownModel,
    },
  });
}

export function describeReportBatch(routes: OpenAPIHono<HttpEnv>): void {
  const lines = z.string().openapi({
    description: 'One event in JSON a line',
    example:
      '{"firstToken":{"requestId":"request-1","ttftMillis":180}}\n{"finished":{"requestId":"request-1","tpotMillis":21,"outputTokens":90}}',
  });
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
