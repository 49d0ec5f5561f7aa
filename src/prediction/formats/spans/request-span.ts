/** Reads the times, tokens and model of a request from its vLLM span. Times in attributes are seconds. */
import type { Attributes, Span } from './span.ts';

/** A request as in `formats/request-log.ts`, without a run. */
export interface RequestSpan {
  readonly requestId: string;
  /** Empty when neither the span nor its resource names it. */
  readonly targetModel: string;
  /** Empty when no attribute of the resource names it. */
  readonly server: string;
  readonly startMs: number;
  readonly firstTokenMs: number;
  readonly endMs: number;
  readonly inputTokens: number;
  /** 0 when the span does not have the number. */
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

export type ParsedSpan = { readonly request: RequestSpan } | { readonly refusal: string } | undefined;

const TTFT = 'gen_ai.latency.time_to_first_token';
const E2E = 'gen_ai.latency.e2e';
const INPUT = 'gen_ai.usage.prompt_tokens';
/** Only some versions of vLLM send it. */
const CACHED = 'gen_ai.usage.cached_tokens';
const OUTPUT = 'gen_ai.usage.completion_tokens';
/** More than 1 means several answers to one prompt: vLLM adds up their tokens, so the time of a single answer is unknown. */
const SEQUENCES = ['gen_ai.request.n', 'gen_ai.usage.num_sequences'];

/** Attributes of a resource that name a server, the most exact first. */
const SERVER_ATTRIBUTES = ['server.address', 'k8s.pod.ip', 'service.instance.id', 'k8s.pod.name', 'host.name'];

/** Attributes that name the target model, the most exact first. V1 of vLLM writes none; an operator can add one to the resource. */
const MODEL_ATTRIBUTES = ['gen_ai.response.model', 'gen_ai.request.model'];

/** The refusal of a span without such an attribute. */
export const MODEL_MISSING = `the span or its resource must name the model, with one of ${MODEL_ATTRIBUTES.join(', ')}`;

/** The refusal of a span whose resource has none of them. */
export const SERVER_MISSING = `the resource must name the server, with one of ${SERVER_ATTRIBUTES.join(', ')}`;

/** Returns undefined for a span that is not of a request of vLLM, such as those of other programs in the same trace. */
export function parseRequestSpan(span: Span): ParsedSpan {
  const { attributes } = span;
  if (!attributes.has(TTFT) && !attributes.has(E2E)) return undefined;
  if (span.isFailed) return { refusal: 'the request failed' };
  const missing = [TTFT, E2E, INPUT, OUTPUT].find((name) => !isNumber(attributes, name));
  if (missing !== undefined) return { refusal: `${missing} must be a finite number` };
  const several = SEQUENCES.find((name) => Number(attributes.get(name) ?? 1) > 1);
  if (several !== undefined) return { refusal: `${several} must be 1` };
  const number = (name: string) => Number(attributes.get(name));
  if (!(number(TTFT) > 0)) return { refusal: `${TTFT} must be more than 0` };
  return {
    request: {
      requestId: String(attributes.get('gen_ai.request.id') ?? ''),
      targetModel: findModel(span),
      server: findServer(span.resource),
      startMs: span.startMs,
      firstTokenMs: span.startMs + number(TTFT) * 1000,
      endMs: span.startMs + number(E2E) * 1000,
      inputTokens: number(INPUT),
      cachedTokens: isNumber(attributes, CACHED) ? number(CACHED) : 0,
      outputTokens: number(OUTPUT),
    },
  };
}

function isNumber(attributes: Attributes, name: string): boolean {
  const value = attributes.get(name);
  return typeof value === 'number' && Number.isFinite(value);
}

function findModel({ attributes, resource }: Span): string {
  const names = [attributes, resource].flatMap((owner) => MODEL_ATTRIBUTES.map((name) => owner.get(name)));
  return String(names.find(Boolean) ?? '');
}

/** Finds the server, with its port where the resource names one. */
function findServer(resource: Attributes): string {
  const name = SERVER_ATTRIBUTES.find((candidate) => Boolean(resource.get(candidate)));
  if (name === undefined) return '';
  const port = resource.get('server.port');
  return port === undefined || name !== 'server.address' ? String(resource.get(name)) : `${resource.get(name)}:${port}`;
}
