/**
 * RFC 6750 for the resource API. A token may come as `Authorization: Bearer`, `Authorization: token`, `PRIVATE-TOKEN`, or
 * as the parameter `access_token` in the query, a form or JSON (the contract): in one of these ways, not in two (§2).
 */
import type { Context } from 'hono';
import { createMiddleware } from 'hono/factory';
import { Failure } from '../errors.ts';
import { mayHoldFields, readBodyFields } from '../http/body-fields.ts';
import type { HttpEnv } from '../http/context.ts';
import { type Call, toCall } from '../http/endpoint.ts';
import type { Identity, IdentityEnv, RequireScope, VerifyToken } from '../identity.ts';

const REALM = 'realm="trivet"';

export function createRequireScope(verifyToken: VerifyToken): RequireScope {
  return (scope) =>
    createMiddleware<IdentityEnv>(async (c, next) => {
      c.set('identity', await identifyFor(scope, toCall(c as unknown as Context<HttpEnv>), verifyToken));
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

/** Who calls, when the token has this scope; throws what RFC 6750 §3.1 says when it has not. */
export async function identifyFor(scope: string, call: Call, verifyToken: VerifyToken): Promise<Identity> {
  const identity = await identify(call, verifyToken);
  if (!identity.scopes.includes(scope)) throw refuseScope(scope);
  return identity;
}

/** Who calls; throws what RFC 6750 §3.1 says when nobody can tell. */
export async function identify(call: Call, verifyToken: VerifyToken): Promise<Identity> {
  const token = await readBearerToken(call);
  if (token === undefined) throw refuseAnonymous();
  const identity = await verifyToken(token);
  if (identity === undefined) throw refuseToken();
  return identity;
}

/** Undefined when none was sent. Throws `invalid` when more than one was. */
async function readBearerToken(call: Call): Promise<string | undefined> {
  const inQuery = call.query === '' ? [] : new URLSearchParams(call.query).getAll('access_token');
  // What a URL carries may be kept by caches on the way (RFC 6750 §2.3).
  if (inQuery.length > 0) call.setHeader('Cache-Control', 'no-store');
  const inHeaders = [readAuthorization(call.header('authorization')), call.header('private-token')];
  const tokens = [...inHeaders, ...inQuery, await readBodyToken(call)].filter(
    (token) => token !== undefined && token !== '',
  );
  if (tokens.length > 1) throw refuseTwoTokens();
  return tokens[0];
}

function readAuthorization(header: string | undefined): string | undefined {
  const match = header === undefined ? null : /^(?:bearer|token) +(\S+) *$/i.exec(header);
  return match?.[1];
}

async function readBodyToken(call: Call): Promise<string | undefined> {
  if (call.method === 'GET' || call.method === 'HEAD') return undefined;
  if (!mayHoldFields(call.header('content-type') ?? '')) return undefined;
  try {
    const { access_token: token } = await readBodyFields(call);
    return typeof token === 'string' ? token : undefined;
  } catch {
    // A body that cannot be read holds no token; the handler says what is wrong with it.
    return undefined;
  }
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
