/** Maps each `Failure` to its HTTP status, `Retry-After` and error body: RFC 9457, API v5, OAuth, Connect, OTLP. */
import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { html } from 'hono/html';
import { HTTPException } from 'hono/http-exception';
import { Failure, type FailureCode, isFailure } from '../errors.ts';
import { WireWriter } from '../grpc/protobuf/wire-writer.ts';
import { type GrpcStatusName, statusCodeOf, statusNameOfFailure } from '../grpc/protocol/status.ts';
import type { HttpEnv } from './context.ts';
import { type Call, type Reply, replyJson, toResponse } from './endpoint.ts';
import type { ReplyStyle, RouteMount } from './mount.ts';

export const STATUS_OF = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  too_many: 429,
  internal: 500,
  unavailable: 503,
  deadline: 504,
} as const satisfies Record<FailureCode, number>;

/** The API v5's `error_code_name` for each refusal; a handler may set its own through `details`. */
const PLATFORM_NAME_OF: Record<FailureCode, string> = {
  invalid: 'BAD_REQUEST',
  unauthenticated: 'UNAUTHORIZED',
  forbidden: 'FORBIDDEN',
  not_found: 'NOT_FOUND',
  conflict: 'CONFLICT',
  too_large: 'PAYLOAD_TOO_LARGE',
  too_many: 'TOO_MANY_REQUESTS',
  internal: 'FAIL',
  unavailable: 'SERVICE_UNAVAILABLE',
  deadline: 'TIMEOUT',
};

/** RFC 6749 §5.2 has no codes for server errors (500, 503, 504): those of §4.1.2.1 are used. */
const OAUTH_ERROR_OF: Record<FailureCode, string> = {
  invalid: 'invalid_request',
  unauthenticated: 'invalid_client',
  forbidden: 'access_denied',
  not_found: 'invalid_request',
  conflict: 'invalid_request',
  too_large: 'invalid_request',
  too_many: 'temporarily_unavailable',
  internal: 'server_error',
  unavailable: 'temporarily_unavailable',
  deadline: 'temporarily_unavailable',
};

type FailureContext = Context<HttpEnv>;

/** The fields of a request that a refusal needs. */
type Refused = Pick<Call, 'traceId' | 'log' | 'header'>;

interface Refusal {
  readonly failure: Failure;
  readonly status: number;
  readonly traceId: string;
  readonly contentType: string | undefined;
}

const RENDERER_OF: Record<ReplyStyle, (refusal: Refusal) => Omit<Reply, 'status'>> = {
  problem: renderProblem,
  platform: renderPlatform,
  oauth: renderOAuth,
  rpc: renderRpc,
  otlp: renderOtlp,
  detail: renderDetail,
};

/**
 * Answers for anything thrown. `details` may carry `status` (another HTTP status), `headers`, and for each style the
 * words of its body: `errorCode` and `errorCodeName` (platform), `oauthError` (oauth), `rpcCode` (rpc, otlp), `faults` (detail).
 */
export function replyToError(error: unknown, style: ReplyStyle, refused: Refused): Reply {
  const failure = toFailure(error, refused);
  const status = statusOf(failure);
  const contentType = refused.header('content-type');
  const { headers, body } = RENDERER_OF[style]({ failure, status, traceId: refused.traceId, contentType });
  return { status, headers: { ...headersOf(failure), ...headers }, body };
}

/** Answers a refusal among the routes of Hono, where it may also be a page. */
export function respondToError(
  error: unknown,
  { errors: style, respondPage = renderPage }: Pick<RouteMount, 'errors' | 'respondPage'>,
  c: FailureContext,
): Response | Promise<Response> {
  const refused = { traceId: c.get('traceId'), log: c.get('log'), header: (name: string) => c.req.header(name) };
  const reason = isCutOff(error, c) ? refuseCutOff(error) : error;
  if (style !== 'page') return toResponse(c, replyToError(reason, style, refused));
  const failure = toFailure(reason, refused);
  for (const [name, value] of Object.entries(headersOf(failure))) c.header(name, value);
  return respondPage(failure, statusOf(failure), c);
}

/** Returns the refusal for a caller who left before the end of the request, which is no failure of the server. */
export function refuseCutOff(cause: unknown): Failure {
  return new Failure('invalid', 'Cannot read the request: its body ended early', {}, { cause });
}

function isCutOff(error: unknown, c: FailureContext): boolean {
  const incoming = (c.env as Partial<HttpBindings> | undefined)?.incoming;
  if (incoming === undefined || incoming.complete) return false;
  return incoming.destroyed && (error as NodeJS.ErrnoException).code === 'ECONNRESET';
}

/** The longest message: messages and field names may quote text that the caller sent. A longer one is cut off. */
const MAX_MESSAGE_LENGTH = 2000;
const MAX_FIELD_LENGTH = 200;

function toFailure(error: unknown, { log, traceId }: Refused): Failure {
  if (isFailure(error) && error.code !== 'internal') return shorten(error);
  if (error instanceof HTTPException && error.status < 500)
    return new Failure('invalid', error.message, { status: error.status });
  log.error({ traceId, err: error }, 'A request failed unexpectedly');
  return new Failure('internal', 'The service failed; the trace id finds the reason in its log');
}

function shorten(failure: Failure): Failure {
  const { code, message, details } = failure;
  const { field = '' } = details;
  if (message.length <= MAX_MESSAGE_LENGTH && field.length <= MAX_FIELD_LENGTH) return failure;
  const shown = field === '' ? details : { ...details, field: cut(field, MAX_FIELD_LENGTH) };
  return new Failure(code, cut(message, MAX_MESSAGE_LENGTH), shown);
}

function cut(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).toWellFormed()}…`;
}

function statusOf(failure: Failure): number {
  return (failure.details.status as number | undefined) ?? STATUS_OF[failure.code];
}

function headersOf({ details }: Failure): Record<string, string> {
  const { headers, retryAfterSeconds } = details;
  return {
    ...(headers as Record<string, string> | undefined),
    ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }),
  };
}

function renderProblem({ failure, status, traceId }: Refusal) {
  const { field, retryAfterSeconds } = failure.details;
  const body = {
    type: 'about:blank',
    title: failure.code.replaceAll('_', ' '),
    status,
    detail: failure.message,
    code: failure.code,
    field,
    retryAfterSeconds,
    traceId,
  };
  return { headers: { 'Content-Type': 'application/problem+json' }, body: JSON.stringify(body) };
}

function renderPlatform({ failure, status, traceId }: Refusal) {
  return replyJson({
    error_code: failure.details.errorCode ?? status,
    error_code_name: failure.details.errorCodeName ?? PLATFORM_NAME_OF[failure.code],
    error_message: failure.message,
    message: failure.message,
    trace_id: traceId,
  });
}

function renderOAuth({ failure }: Refusal) {
  const error = failure.details.oauthError ?? OAUTH_ERROR_OF[failure.code];
  const body = { error, error_description: toOAuthText(failure.message) };
  return replyJson(body, { 'Cache-Control': 'no-store', Pragma: 'no-cache' });
}

/** RFC 6749 §5.2: %x20-21 / %x23-5B / %x5D-7E only. */
function toOAuthText(message: string): string {
  return message.replaceAll('"', "'").replace(/[^\x20-\x21\x23-\x5B\x5D-\x7E]/g, ' ');
}

/** The unary error of the Connect protocol: the name of the gRPC status in lower case, and the text. */
function renderRpc({ failure }: Refusal) {
  return replyJson({ code: rpcCodeOf(failure), message: failure.message });
}

function rpcCodeOf({ code, details }: Failure): string {
  return (details.rpcCode as string | undefined) ?? statusNameOfFailure(code).toLowerCase();
}

/** OTLP/HTTP: google.rpc.Status in the encoding of the request, protobuf or JSON; JSON for any other. */
function renderOtlp({ failure, contentType }: Refusal) {
  const code = statusCodeOf(rpcCodeOf(failure).toUpperCase() as GrpcStatusName);
  if (!contentType?.includes('protobuf')) return replyJson({ code, message: failure.message });
  const message = new WireWriter().count(1, code).string(2, failure.message);
  return { headers: { 'Content-Type': 'application/x-protobuf' }, body: new Uint8Array(message.finish()) };
}

/** FastAPI: a text, or a list of what is wrong with the fields of a body. */
function renderDetail({ failure }: Refusal) {
  return replyJson({ detail: failure.details.faults ?? failure.message });
}

function renderPage(failure: Failure, status: number, c: FailureContext): Response | Promise<Response> {
  c.header('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'");
  return c.html(
    html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${status} · Trivet</title></head><body><main><h1>${failure.message}</h1><p>Trace ${c.get('traceId')}</p></main></body></html>`,
    status as 400,
  );
}
