/**
 * RFC 6750 for the resource API. A token may come as `Authorization: Bearer`, `Authorization: token`, `PRIVATE-TOKEN`, or
 * as the parameter `access_token` in the query, a form or JSON (the contract): in one of these ways, not in two (§2).
 */
import type { Context } from 'hono';
import { createMiddleware } from 'hono/factory';
import { Failure } from '../errors.ts';
import type { HttpEnv } from '../http/context.ts';
import type { Identity, IdentityEnv, RequireScope, VerifyToken } from '../identity.ts';

const REALM = 'realm="trivet"';

export function createRequireScope(verifyToken: VerifyToken): RequireScope {
  return (scope) =>
    createMiddleware<IdentityEnv>(async (c, next) => {
      const identity = await identify(c, verifyToken);
      if (!identity.scopes.includes(scope)) throw refuseScope(scope);
      c.set('identity', identity);
      await next();
    });
}

/**
 * For what hands out access: an application that could make tokens or add secrets in its user's name would keep access
 * after the user took it back. Only a token that the user made passes. To be put behind `requireScope`.
 */
export const requirePersonalToken = createMiddleware<IdentityEnv>(async (c, next) => {
  if (c.get('identity').tokenKind !== 'personal')
    throw new Failure('forbidden', 'Forbidden: this takes a personal access token, an application cannot do it');
  await next();
});

/** Who calls; throws what RFC 6750 §3.1 says when nobody can tell. */
export async function identify(c: Context, verifyToken: VerifyToken): Promise<Identity> {
  const token = await readBearerToken(c as unknown as Context<HttpEnv>);
  if (token === undefined) throw refuseAnonymous();
  const identity = await verifyToken(token);
  if (identity === undefined) throw refuseToken();
  return identity;
}

/** Undefined when none was sent. Throws `invalid` when more than one was. */
export async function readBearerToken(c: Context<HttpEnv>): Promise<string | undefined> {
  const inQuery = c.req.queries('access_token') ?? [];
  // What a URL carries may be kept by caches on the way (RFC 6750 §2.3).
  if (inQuery.length > 0) c.header('Cache-Control', 'no-store');
  const inHeaders = [readAuthorization(c.req.header('authorization')), c.req.header('private-token')];
  const tokens = [...inHeaders, ...inQuery, await readBodyToken(c)].filter(
    (token) => token !== undefined && token !== '',
  );
  if (tokens.length > 1) throw refuseTwoTokens();
  return tokens[0];
}

function readAuthorization(header: string | undefined): string | undefined {
  const match = header === undefined ? null : /^(?:bearer|token) +(\S+) *$/i.exec(header);
  return match?.[1];
}

/** The body stays readable for the handler: Hono keeps it. */
async function readBodyToken(c: Context<HttpEnv>): Promise<string | undefined> {
  if (c.req.method === 'GET' || c.req.method === 'HEAD') return undefined;
  const type = c.req.header('content-type') ?? '';
  try {
    if (type.startsWith('application/json')) return pickText(await c.req.json(), 'access_token');
    if (type.startsWith('application/x-www-form-urlencoded') || type.startsWith('multipart/form-data'))
      return pickText(await c.req.parseBody(), 'access_token');
  } catch {
    // A body that cannot be read holds no token; the handler says what is wrong with it.
  }
  return undefined;
}

function pickText(value: unknown, name: string): string | undefined {
  const found = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  return typeof found === 'string' ? found : undefined;
}

/** §3.1: a request without any credentials gets the challenge without an error code. */
function refuseAnonymous(): Failure {
  return refuse('unauthenticated', '401, token not found', `Bearer ${REALM}`);
}

export function refuseToken(): Failure {
  const challenge = `Bearer ${REALM}, error="invalid_token", error_description="The token is unknown, expired or revoked"`;
  return refuse('unauthenticated', '401, token is unknown, expired or revoked', challenge, 'invalid_token');
}

function refuseScope(scope: string): Failure {
  const challenge = `Bearer ${REALM}, error="insufficient_scope", scope="${scope}"`;
  return refuse('forbidden', `Forbidden: the token needs the scope ${scope}`, challenge, 'insufficient_scope');
}

function refuseTwoTokens(): Failure {
  const challenge = `Bearer ${REALM}, error="invalid_request", error_description="More than one token was sent"`;
  return refuse('invalid', 'More than one token was sent', challenge, 'invalid_request');
}

function refuse(
  code: 'unauthenticated' | 'forbidden' | 'invalid',
  message: string,
  challenge: string,
  oauthError?: string,
) {
  return new Failure(code, message, { headers: { 'WWW-Authenticate': challenge }, oauthError });
}
