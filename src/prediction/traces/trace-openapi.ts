/** Describes `POST /v1/traces` in the OpenAPI document. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { HttpEnv } from '../../http/context.ts';

const exportSchema = z.object({ resourceSpans: z.array(z.looseObject({})) }).openapi('ExportTraceServiceRequest');

const responseSchema = z
  .object({
    partialSuccess: z
      .object({
        rejectedSpans: z.string().openapi({ description: 'Spans of requests that cannot be learned from' }),
        errorMessage: z.string().openapi({ description: 'Why the first of them cannot' }),
      })
      .optional(),
  })
  .openapi('ExportTraceServiceResponse');

const statusSchema = z
  .object({ code: z.int().openapi({ description: 'A code of gRPC', example: 3 }), message: z.string() })
  .openapi('RpcStatus');

const bytes = z.string().openapi({ format: 'binary' });

export function describeTraces(routes: OpenAPIHono<HttpEnv>): void {
  // In the content type of the request, as OTLP demands; in JSON for any other type.
  const content = { 'application/x-protobuf': { schema: bytes }, 'application/json': { schema: statusSchema } };
  const refusal = (description: string) => ({ description, content });
  routes.openAPIRegistry.registerPath({
    method: 'post',
    path: '/traces',
    tags: ['Prediction'],
    summary: 'Take spans of vLLM from an OpenTelemetry collector (OTLP/HTTP)',
    request: {
      body: {
        required: true,
        content: { 'application/x-protobuf': { schema: bytes }, 'application/json': { schema: exportSchema } },
      },
    },
    responses: {
      200: {
        description: 'Taken; the accepted requests are durable',
        content: { 'application/x-protobuf': { schema: bytes }, 'application/json': { schema: responseSchema } },
      },
      400: refusal('The body cannot be read'),
      401: refusal('The token is missing or not valid'),
      404: refusal('PREDICTION_TRACES_KV_CAPACITY_TOKENS is not set'),
      413: refusal('The body is too large'),
      415: refusal('The content type or encoding is not known'),
      503: refusal('Too many at once, or too many requests wait'),
    },
  });
}
