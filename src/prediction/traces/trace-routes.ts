/**
 * `POST /v1/traces` as the OTLP/HTTP exporter of an OpenTelemetry collector calls it. Spans of vLLM become observations;
 * all others are passed over, so that a collector may send all that it has.
 */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure } from '../../errors.ts';
import type { CallerRule } from '../../grpc/call/require-caller.ts';
import { type GrpcStatusName, statusCodeOf } from '../../grpc/call/status.ts';
import type { HttpEnv } from '../../http/context.ts';
import { respondToError } from '../../http/failure-response.ts';
import { createRoutes } from '../../http/routes.ts';
import type { World } from '../../world.ts';
import { requireHttpCaller } from '../api/predict-routes.ts';
import type { SpanQueue } from './learn-from-spans.ts';
import { selectLearnableSpans } from './learnable-spans.ts';
import { answerExport, answerRefusal, type TraceAnswer } from './trace-answer.ts';
import { readEncoding, readSpans, type TraceEncoding } from './trace-body.ts';
import { describeTraces } from './trace-openapi.ts';

export interface TraceRouteDependencies {
  readonly rule: CallerRule;
  /** Undefined when the size of the KV caches is not configured: then no load could be worked out. */
  readonly queue: SpanQueue | undefined;
  readonly world: Pick<World, 'nowMs'>;
}

/** To be mounted at `/v1/traces`, with errors in the style `rpc`. */
export function createTraceRoutes({ rule, queue, world }: TraceRouteDependencies): OpenAPIHono<HttpEnv> {
  const routes = createRoutes();
  describeTraces(routes);
  routes.onError(respondWithStatus);
  routes.use(requireHttpCaller(rule, 'observe'));
  routes.post('/', async (c) => {
    const encoding = readEncoding(c.req.header('content-type'));
    if (queue === undefined)
      throw new Failure(
        'not_found',
        'Cannot take traces: PREDICTION_TRACES_KV_CAPACITY_TOKENS must say how many tokens the KV cache of one server holds',
      );
    const accepted = selectLearnableSpans(await readSpans(c, encoding), world.nowMs());
    await queue.add(accepted.spans);
    return respond(c, 200, answerExport(accepted, encoding));
  });
  return routes;
}

/** The same refusal as elsewhere, as OTLP/HTTP words it. */
async function respondWithStatus(error: unknown, c: Context<HttpEnv>): Promise<Response> {
  const refusal = await respondToError(error, { errors: 'rpc' }, c);
  const { code, message } = (await refusal.json()) as { readonly code: string; readonly message: string };
  const retryAfter = refusal.headers.get('retry-after');
  if (retryAfter !== null) c.header('Retry-After', retryAfter);
  const status = statusCodeOf(code.toUpperCase() as GrpcStatusName);
  return respond(c, refusal.status, answerRefusal(status, message, encodingOf(c)));
}

/** JSON for a content type that neither side speaks: a person can read it. */
function encodingOf(c: Context<HttpEnv>): TraceEncoding {
  return c.req.header('content-type')?.includes('protobuf') ? 'protobuf' : 'json';
}

function respond(c: Context<HttpEnv>, status: number, { contentType, body }: TraceAnswer): Response {
  return c.body(body, status as 200, { 'Content-Type': contentType });
}
