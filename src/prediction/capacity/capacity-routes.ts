/** `GET /prediction/capacity`: what `trivet model capacity` answers, for programs. */
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import type { CallerRule } from '../../grpc/call/require-caller.ts';
import type { HttpEnv } from '../../http/context.ts';
import { createRoutes } from '../../http/routes.ts';
import { requireHttpCaller } from '../api/predict-routes.ts';
import type { AskCapacity } from './ask-capacity.ts';
import { querySchema, toOrder } from './capacity-query.ts';
import type { CapacityFound } from './read-capacity.ts';

export interface CapacityRouteDependencies {
  readonly rule: CallerRule;
  readonly ask: AskCapacity;
}

const answerSchema = z
  .object({
    requests_per_second: z.number(),
    concurrency: z.number().openapi({ description: 'Mean of the requests under way in the pool' }),
    limited_by: z.enum(['ttft', 'tpot', 'observed load', 'idle']),
    plateau: z
      .object({ from_requests_per_second: z.number(), to_requests_per_second: z.number() })
      .nullable()
      .openapi({ description: 'Rates over which the latency stays about at its limit' }),
    ttft_ms: z.number().nullable(),
    tpot_ms: z.number().nullable().openapi({ description: 'null for answers of one token, which have no TPOT' }),
    servers: z.array(z.object({ server: z.string(), requests_per_second: z.number(), concurrency: z.number() })),
  })
  .openapi('Capacity');

const route = createRoute({
  method: 'get',
  path: '/capacity',
  tags: ['Prediction'],
  summary: 'The highest rate of requests at which servers keep limits of TTFT and TPOT',
  request: { query: querySchema },
  responses: {
    200: { description: 'The capacity', content: { 'application/json': { schema: answerSchema } } },
    400: { description: 'A parameter is missing or wrong, or there are too few samples' },
    401: { description: 'The token is missing or not valid' },
    404: { description: 'The model is not served' },
    429: { description: 'Another capacity is being found' },
    504: { description: 'It took longer than two minutes: the pool is too large' },
  },
});

/** To be mounted at `/prediction`, with errors in the style `problem`. */
export function createCapacityRoutes({ rule, ask }: CapacityRouteDependencies): OpenAPIHono<HttpEnv> {
  const routes = createRoutes();
  routes.use(requireHttpCaller(rule, 'predict'));
  routes.openapi(route, async (c) => {
    const query = c.req.valid('query');
    return c.json(toAnswer(await ask(toOrder(query))), 200);
  });
  return routes;
}

const IDLE_ANSWER = {
  requests_per_second: 0,
  concurrency: 0,
  limited_by: 'idle',
  plateau: null,
  ttft_ms: null,
  tpot_ms: null,
  servers: [],
} satisfies z.infer<typeof answerSchema>;

function toAnswer({ capacity }: Pick<CapacityFound, 'capacity'>): z.infer<typeof answerSchema> {
  if (capacity === undefined) return IDLE_ANSWER;
  const { plateau } = capacity;
  return {
    requests_per_second: capacity.requestsPerSecond,
    concurrency: capacity.concurrency,
    limited_by: capacity.limitedBy,
    plateau:
      plateau === undefined
        ? null
        : {
            from_requests_per_second: plateau.fromRequestsPerSecond,
            to_requests_per_second: plateau.toRequestsPerSecond,
          },
    ttft_ms: capacity.ttftMs,
    tpot_ms: capacity.tpotMs ?? null,
    servers: capacity.servers.map(({ name, requestsPerSecond, concurrency }) => ({
      server: name,
      requests_per_second: requestsPerSecond,
      concurrency,
    })),
  };
}
