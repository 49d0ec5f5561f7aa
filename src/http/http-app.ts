/**
 * Puts what is mounted together: every request is observed, its body bounded, and a refusal worded as the mount wants it
 * that it happens under. Endpoints that are called all the time have a fast path beside the routes.
 */
import type { RequestListener } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import { Counter } from 'prom-client';
import { Failure } from '../errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { HttpEnv } from './context.ts';
import { allowCrossOrigin } from './cors.ts';
import { NOT_STORED, toCall, toResponse } from './endpoint.ts';
import { respondToError } from './failure-response.ts';
import { createFastPath, type MountedEndpoint } from './fast-path.ts';
import { limitBody } from './limit-body.ts';
import type { RouteMount } from './mount.ts';
import { createRequestObserver, type ObserverParts, type RequestObserver } from './observe-requests.ts';
import { checkQuery } from './parser-limits.ts';

export interface HttpAppParts extends ObserverParts {
  readonly mounts: readonly RouteMount[];
  readonly maxBodyBytes: number;
  /** Rejects when something that requests need is not there. */
  readonly checkReady: () => Promise<void>;
}

export function createHttpApp(parts: HttpAppParts): RequestListener {
  const app = new OpenAPIHono<HttpEnv>();
  const styleOf = createStyleFinder(parts.mounts);
  const observer = createRequestObserver(parts);
  const endpoints = parts.mounts.flatMap(listEndpoints);
  app.use(traceRequests(observer, parts.log));
  app.use(limitQuery, limitBody(parts.maxBodyBytes));
  app.onError((error, c) => respondToError(error, styleOf(c.req.path), c));
  app.notFound((c) => respondToError(describeMissing(app, c), styleOf(c.req.path), c));
  app.route('/', createOperationRoutes(parts));
  for (const endpoint of endpoints) addEndpoint(app, endpoint);
  for (const mount of parts.mounts) app.route(mount.path, mount.routes);
  const readApi = createApiReader(app);
  app.get('/openapi.json', (c) => c.body(readApi(), 200, { 'Content-Type': 'application/json' }));
  const takeFastPath = createFastPath({ ...parts, endpoints, observer });
  const takeFallback = getRequestListener(app.fetch);
  return (incoming, outgoing) => {
    if (!takeFastPath(incoming, outgoing)) void takeFallback(incoming, outgoing);
  };
}

/** The document takes milliseconds to make and never changes: anybody may ask for it, so it is made once. */
function createApiReader(app: OpenAPIHono<HttpEnv>): () => string {
  let text: string | undefined;
  return () => {
    text ??= JSON.stringify(describeApi(app));
    return text;
  };
}

/** OpenAPI 3.1 of every route that has a schema. */
function describeApi(app: OpenAPIHono<HttpEnv>): object {
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Trivet',
      version: '1',
      description:
        'Latency prediction, authorization and repository webhooks. Prediction over gRPC is described in proto/.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
  });
}

function traceRequests(observer: RequestObserver, log: Log): MiddlewareHandler<HttpEnv> {
  return async (c, next) => {
    const { method, path } = c.req;
    const start = observer.start({
      socket: (c.env as Partial<HttpBindings> | undefined)?.incoming?.socket,
      forwardedFor: c.req.header('x-forwarded-for'),
      traceparent: c.req.header('traceparent'),
    });
    c.set('traceId', start.traceId);
    c.set('log', log);
    c.set('clientAddress', start.clientAddress);
    c.header('X-Trace-Id', start.traceId);
    c.header('Cache-Control', NOT_STORED['Cache-Control']);
    await next();
    observer.end(start, { method, path, route: routePath(c, -1), status: c.res.status });
  };
}

const limitQuery: MiddlewareHandler = async (c, next) => {
  checkQuery(c.req.url);
  await next();
};

/** Among the routes, for the requests that the fast path leaves. */
function addEndpoint(app: OpenAPIHono<HttpEnv>, { endpoint, path }: MountedEndpoint): void {
  if (endpoint.isOpenToScripts === true) app.use(path, allowCrossOrigin);
  app.on(endpoint.method, path, async (c) => toResponse(c, await endpoint.answer(toCall(c))));
}

function listEndpoints({ path, errors, endpoints = [] }: RouteMount): MountedEndpoint[] {
  if (errors === 'page') return [];
  return endpoints.map((endpoint) => ({ endpoint, errors, path: endpoint.path === '/' ? path : path + endpoint.path }));
}

type ErrorWords = Pick<RouteMount, 'errors' | 'respondPage'>;

const OWN_PATHS = new Set(['/healthz', '/readyz', '/metrics', '/openapi.json']);

/** The style of the longest mount that holds the path; our own paths, and those outside of all, are read by programs. */
function createStyleFinder(mounts: readonly RouteMount[]): (path: string) => ErrorWords {
  const byLength = [...mounts].sort((a, b) => b.path.length - a.path.length);
  return (path) => {
    const mount = OWN_PATHS.has(path) ? undefined : byLength.find((candidate) => isBelow(path, candidate.path));
    return mount ?? { errors: 'problem' };
  };
}

function isBelow(path: string, mountPath: string): boolean {
  return mountPath === '/' || path === mountPath || path.startsWith(`${mountPath}/`);
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** 405 with `Allow` where the path exists for another method (RFC 9110 §15.5.6), else 404. */
function describeMissing(app: OpenAPIHono<HttpEnv>, c: Context<HttpEnv>): Failure {
  const { method, path } = c.req;
  const allowed = METHODS.filter((candidate) => hasHandler(app, candidate, path));
  if (allowed.length === 0 || allowed.includes(method)) {
    return new Failure('not_found', `No handler found for ${method} ${path}`, {
      errorCodeName: 'NOT_PATH',
      rpcCode: 'unimplemented',
    });
  }
  return new Failure('invalid', `Request method '${method}' not supported, allowed: ${allowed.join(', ')}`, {
    status: 405,
    headers: { Allow: allowed.join(', ') },
    errorCodeName: 'METHOD_NOT_ALLOWED',
    rpcCode: 'unimplemented',
  });
}

function hasHandler(app: OpenAPIHono<HttpEnv>, method: string, path: string): boolean {
  const [matches] = app.router.match(method, path);
  return matches.some(([[, route]]) => route.method === method);
}

function createOperationRoutes({ metrics, checkReady }: HttpAppParts): OpenAPIHono<HttpEnv> {
  const routes = new OpenAPIHono<HttpEnv>();
  const unready = new Counter({
    name: 'trivet_unready_total',
    help: 'Answers of /readyz that were no.',
    registers: [metrics],
  });
  routes.get('/healthz', (c) => c.json({ status: 'ok' }));
  routes.get('/readyz', async (c) => {
    try {
      await checkReady();
      return c.json({ status: 'ready' });
    } catch (error) {
      unready.inc();
      return c.json({ status: 'not ready', reason: (error as Error).message }, 503);
    }
  });
  routes.get('/metrics', async (c) => c.text(await metrics.metrics(), 200, { 'Content-Type': metrics.contentType }));
  return routes;
}
