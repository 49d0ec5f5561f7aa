/** Mounts the endpoints that clients call (/oauth, /.well-known) with CORS for every origin, since none of them reads a cookie. */
import { type Endpoint, replyJson } from '../../http/endpoint.ts';
import type { RouteMount } from '../../http/mount.ts';
import { createRoutes } from '../../http/routes.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { answerDeviceRequest } from './device.ts';
import { answerIntrospection } from './introspect.ts';
import { describeResource, describeServer } from './metadata.ts';
import { describeProtocol } from './protocol-descriptions.ts';
import { answerRevocation } from './revoke.ts';
import { answerTokenRequest } from './token.ts';
import { answerUserinfo } from './userinfo.ts';

export function createProtocolMounts(dependencies: ProtocolDependencies): RouteMount[] {
  const described = createRoutes();
  describeProtocol(described);
  return [
    { path: '/oauth', errors: 'oauth', routes: described, endpoints: listEndpoints(dependencies).map(open) },
    { path: '/.well-known', errors: 'oauth', routes: createRoutes(), endpoints: listDocuments(dependencies).map(open) },
  ];
}

function open(endpoint: Endpoint): Endpoint {
  return { ...endpoint, isOpenToScripts: true };
}

function listEndpoints(dependencies: ProtocolDependencies): Endpoint[] {
  return [
    { method: 'POST', path: '/token', answer: (call) => answerTokenRequest(dependencies, call) },
    { method: 'POST', path: '/revoke', answer: (call) => answerRevocation(dependencies, call) },
    { method: 'POST', path: '/introspect', answer: (call) => answerIntrospection(dependencies, call) },
    { method: 'POST', path: '/device', answer: (call) => answerDeviceRequest(dependencies, call) },
    { method: 'GET', path: '/userinfo', answer: (call) => answerUserinfo(dependencies, call) },
    { method: 'POST', path: '/userinfo', answer: (call) => answerUserinfo(dependencies, call) },
    {
      method: 'GET',
      path: '/jwks',
      answer: async () => replyJson({ keys: await dependencies.signingKeys.listPublic() }, PUBLIC),
    },
  ];
}

const PUBLIC = { 'Cache-Control': 'public, max-age=300' };

function listDocuments({ issuer, baseUrl }: ProtocolDependencies): Endpoint[] {
  const server = replyJson(describeServer(issuer), PUBLIC);
  const resource = replyJson(describeResource(baseUrl, issuer), PUBLIC);
  return [
    { method: 'GET', path: '/oauth-authorization-server', answer: async () => server },
    { method: 'GET', path: '/openid-configuration', answer: async () => server },
    { method: 'GET', path: '/oauth-protected-resource', answer: async () => resource },
  ];
}
