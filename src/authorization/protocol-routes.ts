/** The endpoints that clients call: /oauth and /.well-known. Open to scripts of any origin, since none reads a cookie. */
import { createMiddleware } from 'hono/factory';
import type { HttpEnv } from '../http/context.ts';
import type { RouteMount } from '../http/mount.ts';
import { createRoutes } from '../http/routes.ts';
import { answerDeviceRequest } from './device.ts';
import { answerIntrospection } from './introspect.ts';
import { describeResource, describeServer } from './metadata.ts';
import { answerUserinfo } from './openid/userinfo.ts';
import type { ProtocolParts } from './parts.ts';
import { describeProtocol } from './protocol-descriptions.ts';
import { answerRevocation } from './revoke.ts';
import { answerTokenRequest } from './token.ts';

const openToScripts = createMiddleware<HttpEnv>(async (c, next) => {
  c.header('Access-Control-Allow-Origin', '*');
  if (c.req.method !== 'OPTIONS') {
    c.header('Access-Control-Expose-Headers', 'WWW-Authenticate, Retry-After');
    await next();
    return;
  }
  return c.body(null, 204, {
    'Access-Control-Allow-Methods': 'GET, POST',
    'Access-Control-Allow-Headers': 'Authorization, Content-Type',
    'Access-Control-Max-Age': '86400',
  });
});

export function createProtocolMounts(parts: ProtocolParts): RouteMount[] {
  return [
    { path: '/oauth', errors: 'oauth', routes: createOAuthRoutes(parts) },
    { path: '/.well-known', errors: 'oauth', routes: createWellKnownRoutes(parts) },
  ];
}

function createOAuthRoutes(parts: ProtocolParts) {
  const routes = createRoutes();
  for (const path of ['/token', '/revoke', '/introspect', '/device', '/userinfo', '/jwks'])
    routes.use(path, openToScripts);
  describeProtocol(routes);
  routes.post('/token', (c) => answerTokenRequest(parts, c));
  routes.post('/revoke', (c) => answerRevocation(parts, c));
  routes.post('/introspect', (c) => answerIntrospection(parts, c));
  routes.post('/device', (c) => answerDeviceRequest(parts, c));
  routes.on(['GET', 'POST'], '/userinfo', (c) => answerUserinfo(parts, c));
  routes.get('/jwks', async (c) => c.json({ keys: await parts.signingKeys.listPublic() }, 200, PUBLIC));
  return routes;
}

const PUBLIC = { 'Cache-Control': 'public, max-age=300' };

function createWellKnownRoutes({ issuer, baseUrl }: ProtocolParts) {
  const routes = createRoutes();
  routes.use(openToScripts);
  const server = describeServer(issuer);
  // RFC 8414 §3.1 puts the name before the issuer's path, OpenID Connect behind the whole issuer.
  const issuerPath = new URL(issuer).pathname.replace(/\/$/, '');
  for (const name of ['/oauth-authorization-server', '/openid-configuration']) {
    routes.get(name, (c) => c.json(server, 200, PUBLIC));
    if (issuerPath !== '') routes.get(name + issuerPath, (c) => c.json(server, 200, PUBLIC));
  }
  routes.get('/oauth-protected-resource', (c) => c.json(describeResource(baseUrl, issuer), 200, PUBLIC));
  return routes;
}
