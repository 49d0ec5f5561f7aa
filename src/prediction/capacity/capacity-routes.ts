/** Serves `GET /prediction/capacity`: the highest request rate within limits of latency. */
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

const LENGTH_PARAMETERS = ['prompt_tokens', 'output_tokens'] as const;

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
    prompt_tokens: z.number().openapi({ description: 'The mean length of a prompt that this is for' }),
    output_tokens: z.number().openapi({ description: 'The mean length of an answer that this is for' }),
    assumed: z
      .array(z.enum(LENGTH_PARAMETERS))
      .openapi({ description: 'Which of the two lengths were left out, and are those of the samples' }),
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

/** Must be mounted at `/prediction`, with errors in the style `problem`. */
export function createCapacityRoutes({ rule, ask }: CapacityRouteDependencies): OpenAPIHono<HttpEnv> {
  const routes = createRoutes();
  routes.use(requireHttpCaller(rule, 'predict'));
  routes.openapi(route, async (c) => {
    const query = c.req.valid('query');
    const found = await ask(toOrder(query));
    const assumed = LENGTH_PARAMETERS.filter((name) => query[name] === undefined);
    const { promptTokens: prompt_tokens, outputTokens: output_tokens } = found.lengths;
    return c.json({ ...toAnswer(found), prompt_tokens, output_tokens, assumed }, 200);
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
} satisfies FoundAnswer;

type FoundAnswer = Omit<z.infer<typeof answerSchema>, (typeof LENGTH_PARAMETERS)[number] | 'assumed'>;

function toAnswer({ capacity }: Pick<CapacityFound, 'capacity'>): FoundAnswer {
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
