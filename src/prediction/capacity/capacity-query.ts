/** Parses the query of `GET /prediction/capacity`, and names the wrong parameter. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import { MAX_MODEL_NAME_BYTES } from '../schema/model-name.ts';
import { describeRange, LIMIT_RANGES, type NumberRange, readNumberIn } from './limit-ranges.ts';
import type { CapacityOrder } from './read-capacity.ts';

const PARAMETERS = {
  model: readText('the name of a target model')
    .min(1, 'must be the name of a target model, got ""')
    .max(MAX_MODEL_NAME_BYTES),
  ttft_ms: readNumber('TTFT must stay below', LIMIT_RANGES.milliseconds).optional(),
  tpot_ms: readNumber('TPOT must stay below', LIMIT_RANGES.milliseconds).optional(),
  quantile: readNumber('The share of requests that must stay below', LIMIT_RANGES.quantile)
    .default(0.9)
    .openapi({ default: 0.9 }),
  output_tokens: readNumber(
    'Mean length of an answer; that of the samples when it is left out',
    LIMIT_RANGES.outputTokens,
  ).optional(),
  prompt_tokens: readNumber(
    'Mean length of a prompt; that of the samples when it is left out',
    LIMIT_RANGES.promptTokens,
  ).optional(),
  servers: readText('names of servers, with commas')
    .optional()
    .openapi({ description: 'The pool, with commas; all that the samples name' }),
  pod_type: readText('the name of a pod type').max(256).default(''),
};

/** Unknown parameters are refused, since a misspelt one would silently change the question. */
export const querySchema = z.strictObject(PARAMETERS, {
  error: (issue) =>
    issue.code === 'unrecognized_keys'
      ? `must not have ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}; allowed are ${Object.keys(PARAMETERS).join(', ')}`
      : undefined,
});

/** Parses the same parameters from the form of a page. */
export const formSchema = z.object(PARAMETERS);

function readText(what: string) {
  return z.string({ error: ({ input }) => refuseInput(what, input) });
}

function readNumber(description: string, range: NumberRange) {
  const read = (value: unknown) => (typeof value === 'string' ? (readNumberIn(range, value) ?? value) : value);
  const number = z.number({ error: ({ input }) => refuseInput(describeRange(range), input) });
  return z.preprocess(read, number).openapi({ type: 'number', description, ...range });
}

const MAX_SHOWN = 100;

function refuseInput(what: string, input: unknown): string {
  if (input === undefined) return `must be given: ${what}`;
  if (typeof input !== 'string') return 'must be given once';
  return `must be ${what}, got ${JSON.stringify(input.slice(0, MAX_SHOWN))}`;
}

const MAX_SERVERS = 256;

export function toOrder(query: z.infer<typeof querySchema>): CapacityOrder {
  const { model, ttft_ms: ttftMs, tpot_ms: tpotMs, quantile, pod_type: podType } = query;
  const { prompt_tokens: promptTokens, output_tokens: outputTokens } = query;
  if (ttftMs === undefined && tpotMs === undefined)
    throw new Failure('invalid', 'Cannot find the capacity: ttft_ms, tpot_ms or both must give a limit', {
      field: 'ttft_ms',
    });
  const servers = query.servers?.split(',').map((name) => name.trim());
  if (servers !== undefined && servers.length > MAX_SERVERS)
    throw new Failure('invalid', `Cannot find the capacity: servers must be at most ${MAX_SERVERS}`, {
      field: 'servers',
    });
  return { targetModel: model, limits: { ttftMs, tpotMs, quantile }, promptTokens, outputTokens, servers, podType };
}
