/**
 * Puts the mounted routes together: trace id, one log line a request (never its query: the contract lets secrets travel
 * there), a bounded body, metrics, and refusals in the words of the mount they happen under.
 */
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import { Counter, Histogram } from 'prom-client';
import { Failure } from '../errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { traceIdOf } from '../telemetry/trace-id.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { World } from '../world.ts';
import { createAddressReader } from './client-address.ts';
import type { HttpEnv } from './context.ts';
import { respondToError } from './failure-response.ts';
import { limitBody } from './limit-body.ts';
import type { RouteMount } from './mount.ts';

export interface HttpAppParts {
  readonly mounts: readonly RouteMount[];
  readonly log: Log;
  readonly metrics: Metrics;
  readonly world: World;
  readonly tracing?: Tracing | undefined;
  readonly maxBodyBytes: number;
  /** Addresses or ranges whose `X-Forwarded-For` is believed; none unless given. */
  readonly trustedProxies?: readonly string[];
  /** Rejects when something that requests need is not there. */
  readonly checkReady: () => Promise<void>;
}

export function createHttpApp(parts: HttpAppParts): OpenAPIHono<HttpEnv> {
  const app = new OpenAPIHono<HttpEnv>();
  const styleOf = createStyleFinder(parts.mounts);
  app.use(traceRequests(parts));
  app.use(limitBody(parts.maxBodyBytes));
  app.onError((error, c) => respondToError(error, styleOf(c.req.path), c));
  app.notFound((c) => respondToError(describeMissing(app, c), styleOf(c.req.path), c));
  app.route('/', createOperationRoutes(parts));
  for (const mount of parts.mounts) app.route(mount.path, mount.routes);
  app.get('/openapi.json', (c) => c.json(describeApi(app)));
  return app;
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

function traceRequests({
  log,
  metrics,
  world,
  tracing,
  trustedProxies = [],
}: HttpAppParts): MiddlewareHandler<HttpEnv> {
  const seconds = new Histogram({
    name: 'trivet_http_request_duration_seconds',
    help: 'Time from the head of a request to the head of its answer.',
    labelNames: ['method', 'status'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15],
    registers: [metrics],
  });
  const readClientAddress = createAddressReader(trustedProxies);
  return async (c, next) => {
    const startedMs = world.monotonicMs();
    const traceId = traceIdOf(c.req.header('traceparent'), world);
    c.set('traceId', traceId);
    c.set('log', log);
    c.set('clientAddress', readClientAddress(c));
    c.header('X-Trace-Id', traceId);
    await next();
    const durationMs = world.monotonicMs() - startedMs;
    seconds.observe({ method: c.req.method, status: c.res.status }, durationMs / 1000);
    const line = {
      traceId,
      method: c.req.method,
      path: c.req.path,
      status: c.res.status,
      durationMs: Math.round(durationMs * 1000) / 1000,
    };
    if (isProbe(c.req.path)) {
      log.trace(line, 'request');
      return;
    }
    log.info(line, 'request');
    if (tracing === undefined) return;
    // The pattern that answered, such as /repos/:owner/:repo: paths would be names without end.
    const route = routePath(c, -1);
    tracing.record({
      name: `${c.req.method} ${route}`,
      traceId,
      traceparent: c.req.header('traceparent'),
      endedAtMs: world.nowMs(),
      durationMs,
      attributes: {
        'http.request.method': c.req.method,
        'http.route': route,
        'http.response.status_code': c.res.status,
      },
      hasFailed: c.res.status >= 500,
    });
  };
}

function isProbe(path: string): boolean {
  return path === '/healthz' || path === '/readyz' || path === '/metrics';
}

type ErrorWords = Pick<RouteMount, 'errors' | 'respondPage'>;

/** The style of the longest mount that holds the path; paths outside of all are our own. */
function createStyleFinder(mounts: readonly RouteMount[]): (path: string) => ErrorWords {
  const byLength = [...mounts].sort((a, b) => b.path.length - a.path.length);
  return (path) => byLength.find((mount) => isBelow(path, mount.path)) ?? { errors: 'problem' };
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
    return new Failure('not_found', `No handler found for ${method} ${path}`, { errorCodeName: 'NOT_PATH' });
  }
  return new Failure('invalid', `Request method '${method}' not supported, allowed: ${allowed.join(', ')}`, {
    status: 405,
    headers: { Allow: allowed.join(', ') },
    errorCodeName: 'METHOD_NOT_ALLOWED',
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
