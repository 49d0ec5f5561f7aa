/**
 * Reads the bearer token of a request, refuses with 401 or 403, and checks its scope (RFC 6750). A token may come as
 * `Authorization: Bearer`, `Authorization: token`, `PRIVATE-TOKEN`, or as the parameter `access_token` in the query, a form or
 * JSON (GitCode's clients). §2 lets a client use one of these ways; some send the same token in two, which says nothing else
 * than one of them would. Different tokens are refused.
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
 * Guards routes that hand out or list access: an application that could make tokens or add secrets in its user's name would keep
 * access after the user took it back, and the consent page promises that it sees a profile, not tokens and their repositories.
 * Only a token that the user made passes. It must stand behind `requireScope`.
 */
export const requirePersonalToken = createMiddleware<IdentityEnv>(async (c, next) => {
  if (c.get('identity').tokenKind !== 'personal')
    throw new Failure('forbidden', 'Forbidden: this takes a personal access token, an application cannot do it');
  await next();
});

/** The description of such routes. */
export const PERSONAL_TOKEN_ONLY = 'It takes a personal access token: an application cannot call it.';

/** Who calls, when the token has this scope; throws what RFC 6750 §3.1 says when it has not. */
export async function identifyFor(scope: string, call: Call, verifyToken: VerifyToken): Promise<Identity> {
  return await identifyAnd(call, verifyToken, (identity) => {
    if (!permits(identity, scope)) throw refuseScope(scope);
  });
}

/** Returns the caller; throws the error of RFC 6750 §3.1 when the caller is unknown. */
export async function identify(call: Call, verifyToken: VerifyToken): Promise<Identity> {
  return await identifyAnd(call, verifyToken, () => {});
}

/** `check` throws for a caller who may not do this: it is called before more than fields of the body are read. */
async function identifyAnd(
  call: Call,
  verifyToken: VerifyToken,
  check: (identity: Identity) => void,
): Promise<Identity> {
  // For a cache that keeps what it must not: an answer to one token is not the answer to another, or to none.
  call.setHeader('Vary', 'Authorization, Private-Token');
  const token = readHeadToken(call);
  // A stranger's body is not read: only where the head has no token, the body may have it.
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

/** The token in the headers or the query; undefined when none was sent. Throws `invalid` when two of them differ. */
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
  // The handler may take more than fields, and the search would refuse it when its length is not known.
  if (known !== undefined && call.header('transfer-encoding') !== undefined) await call.bytes();
  try {
    const { access_token: token } = await readBodyFields(call);
    return typeof token === 'string' && token !== '' ? token : undefined;
  } catch {
    // A body that cannot be read, or is too long for named fields, holds no token; the handler says what is wrong with it.
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

function refuseTwoTokens(): Failure {
  const challenge = `Bearer ${REALM}, error="invalid_request", error_description="Two different tokens were sent"`;
  return refuse('invalid', 'Two different tokens were sent; send one', challenge, 'invalid_request');
}

function refuse(code: 'unauthenticated' | 'invalid', message: string, challenge: string, oauthError?: string) {
  return new Failure(code, message, { headers: { 'WWW-Authenticate': challenge }, oauthError });
}
