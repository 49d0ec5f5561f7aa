/**
 * Describes the protocol endpoints in the OpenAPI document. The endpoints parse their parameters without these schemas, which
 * are stricter than the specifications.
 */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { HttpEnv } from '../../http/context.ts';

const errorSchema = z
  .object({ error: z.string(), error_description: z.string() })
  .openapi('OAuthError', { description: 'RFC 6749 §5.2' });

const tokenSchema = z
  .object({
    access_token: z.string(),
    token_type: z.literal('bearer'),
    expires_in: z.int().openapi({ description: 'Seconds' }),
    refresh_token: z.string().optional(),
    scope: z.string(),
    created_at: z.string(),
    id_token: z.string().optional(),
  })
  .openapi('TokenAnswer');

const introspectionSchema = z
  .object({
    active: z.boolean(),
    scope: z.string().optional().openapi({ description: 'The scopes that count now' }),
    repositories: z.array(z.string()).optional().openapi({
      description: 'OWNER/NAME of the only repositories that the personal token reaches; absent without this limit',
    }),
  })
  .loose()
  .openapi('Introspection');

const deviceSchema = z
  .object({
    device_code: z.string(),
    user_code: z.string(),
    verification_uri: z.string(),
    verification_uri_complete: z.string(),
    expires_in: z.int(),
    interval: z.int(),
  })
  .openapi('DeviceCodes');

const json = (schema: z.ZodType) => ({ content: { 'application/json': { schema } } });
const client = { client_id: z.string().optional(), client_secret: z.string().optional() };
const form = (shape: z.ZodRawShape) => ({
  body: { content: { 'application/x-www-form-urlencoded': { schema: z.object({ ...shape, ...client }) } } },
});
const refusals = {
  400: { description: 'Refused (RFC 6749 §5.2)', ...json(errorSchema) },
  401: { description: 'Client authentication failed', ...json(errorSchema) },
  429: { description: 'Too many attempts', ...json(errorSchema) },
};
const tags = ['OAuth'];

type RouteDocument = Parameters<OpenAPIHono['openAPIRegistry']['registerPath']>[0];

const DOCUMENTS: readonly RouteDocument[] = [
  {
    method: 'post',
    path: '/token',
    summary: 'Exchange a code, refresh, or obtain a token for the client itself or for a device',
    tags,
    request: form({
      grant_type: z.string(),
      code: z.string().optional(),
      redirect_uri: z.string().optional(),
      code_verifier: z.string().optional(),
      refresh_token: z.string().optional(),
      device_code: z.string().optional(),
      scope: z.string().optional(),
    }),
    responses: { 200: { description: 'Tokens', ...json(tokenSchema) }, ...refusals },
  },
  {
    method: 'post',
    path: '/revoke',
    summary: 'Revoke a token (RFC 7009)',
    tags,
    request: form({ token: z.string(), token_type_hint: z.string().optional() }),
    responses: {
      200: { description: 'The token is revoked, or was not valid', ...json(z.object({})) },
      ...refusals,
    },
  },
  {
    method: 'post',
    path: '/introspect',
    summary: 'Introspect a token (RFC 7662)',
    tags,
    request: form({ token: z.string(), token_type_hint: z.string().optional() }),
    responses: { 200: { description: 'Its state', ...json(introspectionSchema) }, ...refusals },
  },
  {
    method: 'post',
    path: '/device',
    summary: 'Obtain codes for a device without a browser (RFC 8628)',
    tags,
    request: form({ scope: z.string().optional() }),
    responses: { 200: { description: 'The codes', ...json(deviceSchema) }, ...refusals },
  },
  {
    method: 'get',
    path: '/userinfo',
    summary: 'The subject of a token with the scope openid (OpenID Connect Core §5.3)',
    tags,
    responses: {
      200: { description: 'Claims', ...json(z.object({ sub: z.string() }).loose()) },
      401: { description: 'The token is missing or not valid (RFC 6750 §3.1)', ...json(errorSchema) },
      403: { description: 'The token does not have the scope openid', ...json(errorSchema) },
    },
  },
];

/** Describes the routes of `/oauth` with form parameters, which may also be sent in the query or in JSON. */
export function describeProtocol({ openAPIRegistry }: OpenAPIHono<HttpEnv>): void {
  for (const document of DOCUMENTS) openAPIRegistry.registerPath(document);
}

const authorizeQuery = z.object({
  client_id: z.string(),
  redirect_uri: z.string(),
  response_type: z.literal('code'),
  scope: z.string().optional(),
  state: z.string().optional(),
  code_challenge: z.string().optional(),
  code_challenge_method: z.literal('S256').optional(),
  nonce: z.string().optional(),
  prompt: z.string().optional(),
  max_age: z.string().optional(),
  login_hint: z.string().optional(),
  id_token_hint: z.string().optional(),
});

/** Describes the route of `/oauth/authorize`. */
export function describeAuthorize(routes: OpenAPIHono<HttpEnv>): void {
  routes.openAPIRegistry.registerPath({
    method: 'get',
    path: '/',
    summary: 'Ask the user for access, and redirect back with code, state and iss',
    tags,
    request: { query: authorizeQuery },
    responses: {
      200: { description: 'A page for the user' },
      302: { description: 'To redirect_uri, with code or error' },
      303: { description: 'To the sign-in page' },
      400: { description: 'A page, without a redirect: the client or its redirect_uri is unknown' },
    },
  });
}
