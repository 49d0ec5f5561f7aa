/**
 * Serves a list of endpoints: observes each request, bounds its body, and writes its refusal in the style of the path. A separate
 * port serves only such a list.
 */
import type { RequestListener } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import { Failure } from '../errors.ts';
import type { Log } from '../telemetry/log.ts';
import { limitBody } from './body/limit-body.ts';
import { CountedMessage } from './chunk-limit.ts';
import { networkOf } from './client-address.ts';
import type { HttpEnv } from './context.ts';
import { allowCrossOrigin } from './cors.ts';
import { NOT_STORED, toCall, toResponse } from './endpoint.ts';
import { createEndpointFinder, type FindEndpoint, type MountedEndpoint, toRoutePath } from './endpoint-path.ts';
import { respondToError } from './failure-response.ts';
import { createFastPath, type FastPathDependencies } from './fast-path.ts';
import type { ReplyStyle, RouteMount } from './mount.ts';
import type { RequestObserver } from './observe-requests.ts';
import { checkQuery } from './parser-limits.ts';

/** The mount of a path decides this for all requests below it. */
export type MountWords = Pick<RouteMount, 'errors' | 'respondPage' | 'maxBodyBytes'>;

export interface BaseAppDependencies extends FastPathDependencies {
  /** How a refusal under this path is worded. */
  readonly styleOf: (path: string) => MountWords;
}

/** A listener for these endpoints and nothing else; what is not found is refused in the given style. */
export function createEndpointApp(
  dependencies: FastPathDependencies & { readonly errors: ReplyStyle },
): RequestListener {
  const { errors } = dependencies;
  const app = createBaseApp({ ...dependencies, styleOf: () => ({ errors }) });
  for (const mounted of dependencies.endpoints) addEndpoint(app, mounted, dependencies.maxBodyBytes);
  return createListener(app, dependencies);
}

/** An application without routes. */
export function createBaseApp(dependencies: BaseAppDependencies): OpenAPIHono<HttpEnv> {
  const { observer, log, styleOf } = dependencies;
  const findEndpoint = createEndpointFinder(dependencies.endpoints);
  const findMaxBytes = ({ method, url }: { readonly method: string; readonly url: string }) =>
    findEndpoint(method, pathOf(url))?.mounted.endpoint.maxBodyBytes ??
    styleOf(pathOf(url)).maxBodyBytes ??
    dependencies.maxBodyBytes;
  const app = new OpenAPIHono<HttpEnv>();
  app.use(traceRequests(observer, log));
  app.use(checkUrl, limitBody({ findMaxBytes, readNetwork, budget: dependencies.bodyBudget, findIncoming }));
  app.onError((error, c) => respondToError(error, styleOf(c.req.path), c));
  app.notFound((c) => respondToError(describeMissing(app, c), styleOf(c.req.path), c));
  return app;
}

function findIncoming(c: Context<HttpEnv>): CountedMessage | undefined {
  const incoming = (c.env as Partial<HttpBindings> | undefined)?.incoming;
  return incoming instanceof CountedMessage ? incoming : undefined;
}

function readNetwork(c: Context<HttpEnv>): string {
  return networkOf(c.get('clientAddress') ?? '');
}

/** Adds an endpoint to the routes, for the requests that do not take the fast path. */
export function addEndpoint(app: OpenAPIHono<HttpEnv>, mounted: MountedEndpoint, maxBodyBytes: number): void {
  const { endpoint, path } = mounted;
  const findParameter = createParameterReader(createEndpointFinder([mounted]));
  if (endpoint.isOpenToScripts === true) app.use(path, allowCrossOrigin);
  const facts = { maxBodyBytes: endpoint.maxBodyBytes ?? maxBodyBytes };
  app.on(endpoint.method, toRoutePath(path), async (c) => {
    c.set('isProbe', endpoint.isProbe === true);
    return toResponse(c, await endpoint.answer(toCall(c, { ...facts, parameter: findParameter(c) })));
  });
}

/** The fast path first, then the routes. */
export function createListener(app: OpenAPIHono<HttpEnv>, dependencies: FastPathDependencies): RequestListener {
  const takeFastPath = createFastPath(dependencies);
  // HTTP/1.0 needs no Host, and health checks of proxies and monitors send none.
  const takeFallback = getRequestListener(app.fetch, { hostname: 'localhost' });
  return (incoming, outgoing) => {
    if (!takeFastPath(incoming, outgoing)) void takeFallback(incoming, outgoing);
  };
}

/** HEAD is answered by the route of GET. */
function createParameterReader(findEndpoint: FindEndpoint): (c: Context<HttpEnv>) => string {
  return ({ req }) => findEndpoint(req.method === 'HEAD' ? 'GET' : req.method, pathOf(req.url))?.parameter ?? '';
}

/** Returns the path of an absolute URL. */
function pathOf(url: string): string {
  return new URL(url).pathname;
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
    const isProbe = c.get('isProbe');
    observer.end(start, { method, path, route: routePath(c, -1), status: c.res.status, isProbe });
  };
}

const checkUrl: MiddlewareHandler = async (c, next) => {
  checkNoUser(c.req.url);
  checkQuery(c.req.url);
  await next();
};

/** RFC 9110, section 4.2.4: user information before an @ may mislead. The Fetch API's Request accepts no such URL. */
function checkNoUser(url: string): void {
  if (!url.includes('@')) return;
  const { username, password } = new URL(url);
  if (username !== '' || password !== '')
    throw new Failure('invalid', 'Cannot read the request: its URL must not name a user');
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
