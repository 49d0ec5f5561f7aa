/** Assembles the HTTP application: tracing, body limits, mounts, their error styles, and the fast path. */
import type { RequestListener } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Counter } from 'prom-client';
import { type BodyBudget, createBodyBudget } from './body/body-budget.ts';
import type { HttpEnv } from './context.ts';
import { addEndpoint, createBaseApp, createListener, type MountWords } from './endpoint-app.ts';
import { listEndpoints } from './endpoint-path.ts';
import type { ErrorStyle, RouteMount } from './mount.ts';
import { createRequestObserver, type ObserverDependencies, type RequestObserver } from './observe-requests.ts';

/** Completes the OpenAPI document of the routes; `styleOf` gives the error style of a path. */
export type CompleteApi = (document: object, styleOf: (path: string) => ErrorStyle) => object;

export interface HttpAppDependencies extends ObserverDependencies {
  readonly mounts: readonly RouteMount[];
  /** The observer, if it is shared with other ports; a separate one unless given. */
  readonly observer?: RequestObserver;
  readonly maxBodyBytes: number;
  /** The body budget, if it is shared with other ports; a separate one unless given. */
  readonly bodyBudget?: BodyBudget;
  /** Adds to the API description what the routes do not declare. */
  readonly completeApi?: CompleteApi;
  /** Pages that show the document. */
  readonly createReference?: (readApi: () => object) => OpenAPIHono<HttpEnv>;
  /** The readiness check: rejects when something that requests need is missing. */
  readonly checkReady: () => Promise<void>;
}

/** Builds the API description now: it takes tenths of a second, during which its first reader would delay all calls. */
export function createHttpApp(dependencies: HttpAppDependencies): RequestListener {
  const { completeApi = (document: object) => document } = dependencies;
  const observer = dependencies.observer ?? createRequestObserver(dependencies);
  const endpoints = dependencies.mounts.flatMap(listEndpoints);
  const styleOf = createStyleFinder(dependencies.mounts);
  const shared = { ...dependencies, endpoints, observer, bodyBudget: dependencies.bodyBudget ?? createBodyBudget() };
  const app = createBaseApp({ ...shared, styleOf });
  app.route('/', createOperationRoutes(dependencies));
  for (const endpoint of endpoints) addEndpoint(app, endpoint, dependencies.maxBodyBytes);
  for (const mount of dependencies.mounts) app.route(mount.path, mount.routes);
  const document = completeApi(describeApi(app), (path) => styleOf(path).errors);
  if (dependencies.createReference !== undefined)
    app.route(
      '/',
      dependencies.createReference(() => document),
    );
  // Bytes that all answers share: with a string, each answer would keep a copy until its client has read it.
  const api = new TextEncoder().encode(JSON.stringify(document));
  app.get('/openapi.json', (c) => c.body(api, 200, { 'Content-Type': 'application/json' }));
  return createListener(app, shared);
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

const OWN_PATHS = new Set(['/healthz', '/readyz', '/metrics', '/openapi.json']);

/** The style of the longest mount that has the path. All other paths have the style for programs. */
function createStyleFinder(mounts: readonly RouteMount[]): (path: string) => MountWords {
  const byLength = [...mounts].sort((a, b) => b.path.length - a.path.length);
  return (path) => {
    const mount = OWN_PATHS.has(path) ? undefined : byLength.find((candidate) => isBelow(path, candidate.path));
    return mount ?? { errors: 'problem' };
  };
}

function isBelow(path: string, mountPath: string): boolean {
  return mountPath === '/' || path === mountPath || path.startsWith(`${mountPath}/`);
}

function createOperationRoutes({ metrics, checkReady }: HttpAppDependencies): OpenAPIHono<HttpEnv> {
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
  routes.get('/metrics', async (c, next) => {
    if (!isSentAs(c, '/metrics')) return await next();
    return c.text(await metrics.metrics(), 200, { 'Content-Type': metrics.contentType });
  });
  return routes;
}

/** A proxy that blocks a path compares the raw path; `/%6detrics` and `/x/../metrics` would reach the same route. */
function isSentAs(c: Context<HttpEnv>, path: string): boolean {
  const sent = (c.env as Partial<HttpBindings> | undefined)?.incoming?.url;
  return sent === undefined || sent === path || sent.startsWith(`${path}?`);
}
