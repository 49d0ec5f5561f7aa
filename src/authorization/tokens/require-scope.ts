/**
 * Reads the bearer token of a request, refuses with 401 or 403, and checks its scope (RFC 6750). A token may come as
 * `Authorization: Bearer`, `Authorization: token`, `PRIVATE-TOKEN`, or as the parameter `access_token` in the query, a form or
 * JSON (GitCode's clients). §2 allows one of these ways per request, but some clients send the same token in two, which is
 * harmless and accepted. Different tokens are refused.
 */
import type { Context } from 'hono';
import { createMiddleware } from 'hono/factory';
import { Failure } from '../../errors.ts';
import { mayHoldFields, readBodyFields } from '../../http/body-fields.ts';
import type { HttpEnv } from '../../http/context.ts';
import { type Call, toCall } from '../../http/endpoint.ts';
import { parsePairs } from '../../http/parser-limits.ts';
import type { IdentityEnv, RequireScope } from '../../http/scope-middleware.ts';
import type { Identity, VerifyToken } from '../../identity.ts';
import { permits, refuseScope } from '../../scopes.ts';

const REALM = 'realm="trivet"';

export function createRequireScope(verifyToken: VerifyToken): RequireScope {
  return (scope) =>
    createMiddleware<IdentityEnv>(async (c, next) => {
      const call = toCall(c as unknown as Context<HttpEnv>, { parameter: '', maxBodyBytes: Number.POSITIVE_INFINITY });
      c.set('identity', await identifyFor(scope, call, verifyToken));
      await next();
    });
}

/**
 * Guards routes that create or list credentials: only a personal token passes. An application that could make tokens or add
 * secrets for its user would keep access after the user revoked it, and the consent page promises that it sees a profile, not
 * tokens and their repositories. Use it after `requireScope`.
 */
export const requirePersonalToken = createMiddleware<IdentityEnv>(async (c, next) => {
  if (c.get('identity').tokenKind !== 'personal')
    throw new Failure('forbidden', 'Forbidden: this takes a personal access token, an application cannot do it');
  await next();
});

/** The description of such routes. */
export const PERSONAL_TOKEN_ONLY = 'It takes a personal access token: an application cannot call it.';

/** Returns the caller if the token has this scope; otherwise throws the error of RFC 6750 §3.1. */
export async function identifyFor(scope: string, call: Call, verifyToken: VerifyToken): Promise<Identity> {
  return await identifyAnd(call, verifyToken, (identity) => {
    if (!permits(identity, scope)) throw refuseScope(scope);
  });
}

/** Returns the caller; throws the error of RFC 6750 §3.1 when the caller is unknown. */
export async function identify(call: Call, verifyToken: VerifyToken): Promise<Identity> {
  return await identifyAnd(call, verifyToken, () => {});
}

/** `check` throws for a caller who lacks the permission. A token in the head is checked before any of the body is read. */
async function identifyAnd(
  call: Call,
  verifyToken: VerifyToken,
  check: (identity: Identity) => void,
): Promise<Identity> {
  // Keeps a cache from serving the response for one token to a request with another, or with none.
  call.setHeader('Vary', 'Authorization, Private-Token');
  const token = readHeadToken(call);
  // The body of a caller with an invalid token is not read. Only if the head has no token may the body have it.
  const known = token === undefined ? undefined : await verifySent(token, verifyToken);
  if (known !== undefined) check(known);
  const inBody = await readBodyToken(call, known);
  if (token !== undefined && inBody !== undefined && inBody !== token) throw refuseTwoTokens();
  if (known !== undefined) return known;
  if (inBody === undefined) throw refuseAnonymous();
  const identity = await verifySent(inBody, verifyToken);
  check(identity);
  return identity;
}

async function verifySent(token: string, verifyToken: VerifyToken): Promise<Identity> {
  const identity = await verifyToken(token);
  if (identity === undefined) throw refuseToken();
  return identity;
}

/** Returns the token in the headers or the query; undefined without a token. Throws `invalid` if two differ. */
function readHeadToken(call: Call): string | undefined {
  const inQuery = call.query === '' ? [] : parsePairs(call.query).getAll('access_token');
  const sent = [readAuthorization(call.header('authorization')), call.header('private-token'), ...inQuery];
  const [token, ...others] = new Set(sent.filter((candidate) => candidate !== undefined && candidate !== ''));
  if (others.length > 0) throw refuseTwoTokens();
  return token;
}

function readAuthorization(header: string | undefined): string | undefined {
  const match = header === undefined ? null : /^(?:bearer|token) +(\S+) *$/i.exec(header);
  return match?.[1];
}

async function readBodyToken(call: Call, known: Identity | undefined): Promise<string | undefined> {
  if (call.method === 'GET' || call.method === 'HEAD') return undefined;
  if (!mayHoldFields(call.header('content-type') ?? '')) return undefined;
  // Reads the whole body first: the handler may accept one that is too long for fields, and its length is not known.
  if (known !== undefined && call.header('transfer-encoding') !== undefined) await call.bytes();
  try {
    const { access_token: token } = await readBodyFields(call);
    return typeof token === 'string' && token !== '' ? token : undefined;
  } catch {
    // A body that cannot be read, or is too long for fields, has no token; the handler reports what is wrong with it.
    return undefined;
  }
}

/** RFC 6750 §3.1: a request without any credentials gets a challenge without an error code. */
function refuseAnonymous(): Failure {
  return refuse('unauthenticated', '401, token not found', `Bearer ${REALM}`);
}

export function refuseToken(): Failure {
  const challenge = `Bearer ${REALM}, error="invalid_token", error_description="The token is unknown, expired or revoked"`;
  return refuse('unauthenticated', '401, token is unknown, expired or revoked', challenge, 'invalid_token');
}

function refuseTwoTokens(): Failure {
  const challenge = `Bearer ${REALM}, error="invalid_request", error_description="Two different tokens were sent"`;
  return refuse('invalid', 'Two different tokens were sent; send one', challenge, 'invalid_request');
}

function refuse(code: 'unauthenticated' | 'invalid', message: string, challenge: string, oauthError?: string) {
  return new Failure(code, message, { headers: { 'WWW-Authenticate': challenge }, oauthError });
}
