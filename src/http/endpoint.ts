/**
 * Declares an endpoint that clients call often, served on the fast path and among the routes of Hono. `http-app.ts` mounts it
 * twice: Hono handles all of HTTP, the fast path (`fast-path.ts`) works directly on Node's request and answer. An endpoint cannot
 * see which of the two called it, so both answer the same.
 */
import type { Context } from 'hono';
import type { Log } from '../telemetry/log.ts';
import { FORM_MAX_BYTES, readBytes, readText } from './body/limit-body.ts';
import type { HttpEnv } from './context.ts';
import { parsePairs } from './parser-limits.ts';

export interface Endpoint {
  readonly method: 'GET' | 'POST';
  /** Below the path of its mount, as it is sent; `/` is the mount itself. One `{name}` stands for any text. */
  readonly path: string;
  /** The largest accepted body in bytes, where it differs from the default. */
  readonly maxBodyBytes?: number;
  /** Scripts of any origin may call it and read the answer: only for what reads no cookie. */
  readonly isOpenToScripts?: boolean;
  /** A probe that is called every few seconds: it is recorded like `/readyz`. */
  readonly isProbe?: boolean;
  /** Answers the request. Refusals are thrown, as everywhere. */
  readonly answer: (call: Call) => Promise<Reply>;
}

/** One request. */
export interface Call {
  readonly method: string;
  /** The query with its question mark; empty without one. */
  readonly query: string;
  /** The value of the `{name}` in the endpoint's path, as it was sent; empty when the path has none. */
  readonly parameter: string;
  readonly traceId: string;
  readonly log: Log;
  /** The client's address by the configured trusted proxies; `-` when it is unknown. */
  readonly clientAddress: string;
  /** `name` in lower case. */
  header(name: string): string | undefined;
  /** The body, of at most `FORM_MAX_BYTES`; rejects with `too_large` when it is longer. */
  text(): Promise<string>;
  /** The body, as large as the endpoint takes it; rejects with `too_large` when it is longer. */
  bytes(): Promise<Uint8Array>;
  /** The fields of a form body, url-encoded or multipart; rejects any other body. */
  form(): Promise<Iterable<readonly [string, unknown]>>;
  /** A header of the answer, whether it will be a refusal or not. */
  setHeader(name: string, value: string): void;
}

/** The response. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/**
 * RFC 9111 §4.2.2 lets a cache keep an answer that does not mention caching. Answers carry passwords, tokens and personal
 * data, so each one forbids it, unless it is the same for all callers and sets its own `Cache-Control`.
 */
export const NOT_STORED = { 'Cache-Control': 'no-store' } as const;

export function replyJson(value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status: 200, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(value) };
}

/** These facts of a request are known once its endpoint is found. */
export interface EndpointRequest {
  readonly parameter: string;
  readonly maxBodyBytes: number;
}

const PLAIN_REQUEST: EndpointRequest = { parameter: '', maxBodyBytes: FORM_MAX_BYTES };

/** Adapts a request of Hono for an endpoint. */
export function toCall(c: Context<HttpEnv>, request: EndpointRequest = PLAIN_REQUEST): Call {
  const { parameter, maxBodyBytes } = request;
  const { url, method } = c.req;
  const queryAt = url.indexOf('?');
  return {
    method,
    query: queryAt === -1 ? '' : url.slice(queryAt),
    parameter,
    traceId: c.get('traceId'),
    log: c.get('log'),
    clientAddress: c.get('clientAddress') ?? '-',
    header: (name) => c.req.header(name),
    text: () => readText(c.req, FORM_MAX_BYTES),
    bytes: async () => new Uint8Array(await readBytes(c.req, maxBodyBytes)),
    form: () =>
      readForm(c.req.header('content-type') ?? '', {
        text: () => readText(c.req, FORM_MAX_BYTES),
        arrayBuffer: () => readBytes(c.req, FORM_MAX_BYTES),
      }),
    setHeader: (name, value) => c.header(name, value),
  };
}

interface Body {
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** The fields of a form. The body's bytes stay readable for later readers. */
export async function readForm(contentType: string, body: Body): Promise<Iterable<readonly [string, unknown]>> {
  if (contentType.split(';', 1)[0]?.trim().toLowerCase() === 'application/x-www-form-urlencoded')
    return parsePairs(await body.text());
  const response = new Response(await body.arrayBuffer(), { headers: { 'Content-Type': contentType } });
  return (await response.formData()).entries();
}

export function toResponse(c: Context<HttpEnv>, { status, headers, body }: Reply): Response {
  return c.body(body, status as 200, headers);
}
