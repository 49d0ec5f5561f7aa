/** Describes the body of a refusal in each error style for the OpenAPI document. */
import type { ErrorStyle } from '../mount.ts';
import type { Json } from './api-descriptions.ts';

const text: Json = { type: 'string' };

type Properties = { readonly [name: string]: Json };

function object(properties: Properties, optional: Properties = {}): Json {
  return { type: 'object', properties: { ...properties, ...optional }, required: Object.keys(properties) };
}

const CONTENT_OF: Readonly<Record<ErrorStyle, readonly [type: string, component: string, schema: Json]>> = {
  problem: [
    'application/problem+json',
    'Problem',
    object(
      { type: text, title: text, status: { type: 'integer' }, detail: text, code: text, traceId: text },
      { field: text, retryAfterSeconds: { type: 'integer' } },
    ),
  ],
  platform: [
    'application/json',
    'Refusal',
    object({
      error_code: { type: 'integer', description: 'The HTTP status, or a number that the API v5 defines.' },
      error_code_name: text,
      error_message: text,
      message: text,
      trace_id: text,
    }),
  ],
  oauth: ['application/json', 'OAuthError', object({ error: text, error_description: text })],
  rpc: ['application/json', 'RpcError', object({ code: text, message: text })],
  otlp: ['application/json', 'RpcStatus', object({ code: { type: 'integer' }, message: text })],
  detail: ['application/json', 'LlmDError', object({ detail: text })],
  page: ['text/html', 'ErrorPage', { type: 'string', description: 'A page for a person.' }],
};

export interface ErrorAnswer {
  readonly component: string;
  readonly schema: Json;
  readonly content: Json;
}

export function describeError(style: ErrorStyle): ErrorAnswer {
  const [type, component, schema] = CONTENT_OF[style];
  return { component, schema, content: { [type]: { schema: { $ref: `#/components/schemas/${component}` } } } };
}
