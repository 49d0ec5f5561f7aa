/**
 * Serves Predict over HTTP: JSON, or the same bytes as gRPC (the Connect protocol). It implements the unary part of that protocol,
 * so Connect clients work too.
 */
import { getConnInfo } from '@hono/node-server/conninfo';
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { Failure } from '../../errors.ts';
import { isLoopbackAddress } from '../../grpc/call/peer.ts';
import { type CallerRule, checkToken, needsToken } from '../../grpc/call/require-caller.ts';
import type { HttpEnv } from '../../http/context.ts';
import { createRoutes } from '../../http/routes.ts';
import type { NarrowScope } from '../../scopes.ts';
import type { PredictionService } from './prediction-service.ts';
import { readBytes, readJson } from './rpc-body.ts';
import { describePredict } from './rpc-openapi.ts';

/** Must be mounted at `/prediction.v1.PredictionService`, with errors in the style `rpc`. */
export function createPredictRoutes(service: PredictionService, rule: CallerRule): OpenAPIHono<HttpEnv> {
  const routes = createRoutes();
  describePredict(routes);
  routes.use(requireHttpCaller(rule, 'predict'));
  routes.post('/Predict', async (c) => {
    const kind = readContentType(c.req.header('content-type'));
    if (kind === 'application/json') return c.json(service.answerJson(await readJson(c)));
    if (kind !== 'application/proto') throw refuseContentType(kind);
    const answer = service.answerBytes(await readBytes(c));
    return c.body(new Uint8Array(answer), 200, { 'Content-Type': 'application/proto' });
  });
  return routes;
}

/** Admits a request under the same rule as the same call over gRPC. */
export function requireHttpCaller(rule: CallerRule, scope: NarrowScope): MiddlewareHandler<HttpEnv> {
  return async (c, next) => {
    const caller = { header: (name: string) => c.req.header(name), isLoopback: isLoopbackAddress(readAddress(c)) };
    if (needsToken(rule.mode, caller)) await checkToken(rule, caller, scope);
    await next();
  };
}

/** Returns undefined if the request did not come through a socket. */
function readAddress(c: Context<HttpEnv>): string | undefined {
  const environment = c.env as { readonly incoming?: unknown } | undefined;
  return environment?.incoming === undefined ? undefined : getConnInfo(c).remote.address;
}

/** Forms cannot send these content types, so pages of other sites cannot call (CSRF). */
export function readContentType(header: string | undefined): string {
  return header?.split(';')[0]?.trim().toLowerCase() ?? '';
}

export function refuseContentType(kind: string, allowed = 'application/json or application/proto'): Failure {
  return new Failure('invalid', `Cannot read the request: Content-Type must be ${allowed}, got "${kind}"`, {
    status: 415,
  });
}
