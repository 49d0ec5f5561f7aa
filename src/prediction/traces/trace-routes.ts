/**
 * Serves `POST /v1/traces` for the OTLP/HTTP exporter of a collector. Spans of vLLM become observations; all other spans are
 * ignored, so that a collector may send all that it has.
 */
import type { OpenAPIHono } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import type { CallerRule } from '../../grpc/call/require-caller.ts';
import type { HttpEnv } from '../../http/context.ts';
import { createRoutes } from '../../http/routes.ts';
import { requireHttpCaller } from '../api/predict-routes.ts';
import type { SpanQueue } from './learn-from-spans.ts';
import { selectLearnableSpans } from './learnable-spans.ts';
import { answerExport } from './trace-answer.ts';
import { readEncoding, readSpans } from './trace-body.ts';
import { describeTraces } from './trace-openapi.ts';

export interface TraceRouteDependencies {
  readonly rule: CallerRule;
  /** Undefined when the size of the KV caches is not configured: without it, the load cannot be computed. */
  readonly queue: SpanQueue | undefined;
  /** The target model of spans that do not name one. */
  readonly model: string | undefined;
}

/** Must be mounted at `/v1`, with errors in the style `otlp`: collectors may send their metrics and logs there too. */
export function createTraceRoutes({ rule, queue, model }: TraceRouteDependencies): OpenAPIHono<HttpEnv> {
  const routes = createRoutes();
  describeTraces(routes);
  routes.use(requireHttpCaller(rule, 'observe'));
  routes.post('/traces', async (c) => {
    const encoding = readEncoding(c.req.header('content-type'));
    if (queue === undefined)
      throw new Failure(
        'not_found',
        'Cannot take traces: PREDICTION_TRACES_KV_CAPACITY_TOKENS must say how many tokens the KV cache of one server holds',
      );
    const accepted = selectLearnableSpans(await readSpans(c, encoding), { ...queue.rules(), model });
    await queue.add(accepted.spans);
    const { contentType, body } = answerExport(accepted, encoding);
    return c.body(body, 200, { 'Content-Type': contentType });
  });
  return routes;
}
