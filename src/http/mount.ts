/** Declares how a path is mounted: its routes, its limits, and the style of its errors. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Failure } from '../errors.ts';
import type { HttpEnv } from './context.ts';
import type { Endpoint } from './endpoint.ts';

/**
 * The error style of a mounted path: `problem` is RFC 9457, `platform` is the error body of GitCode's API v5,
 * `oauth` is RFC 6749 §5.2, `rpc` is the error of the Connect protocol, `otlp` is google.rpc.Status in the encoding of the
 * request (OTLP/HTTP), `detail` is the error of FastAPI, `page` is a page for a person.
 */
export type ErrorStyle = ReplyStyle | 'page';
export type ReplyStyle = 'problem' | 'platform' | 'oauth' | 'rpc' | 'otlp' | 'detail';

/** Routes of one area below one path, with one style of errors. */
export interface RouteMount {
  readonly path: string;
  readonly errors: ErrorStyle;
  readonly routes: OpenAPIHono<HttpEnv>;
  /** The largest body in bytes, where it differs from other paths. */
  readonly maxBodyBytes?: number | undefined;
  /** Endpoints beside the routes that are called so often that they have a fast path. Never with the style `page`. */
  readonly endpoints?: readonly Endpoint[];
  /** Shows a refusal where `errors` is `page`; a bare page unless given. */
  readonly respondPage?: RespondPage;
}

export type RespondPage = (failure: Failure, status: number, c: Context<HttpEnv>) => Response | Promise<Response>;
