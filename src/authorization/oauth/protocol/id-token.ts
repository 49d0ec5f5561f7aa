/** Signs identity tokens (ID tokens) and builds their claims (OpenID Connect Core §2). Reads one that comes as `id_token_hint`. */
import { hash } from 'node:crypto';
import { createLocalJWKSet, decodeJwt, errors, jwtVerify, SignJWT } from 'jose';
import type { ProtocolDependencies } from '../../tokens/protocol-dependencies.ts';
import type { SigningKey } from '../../tokens/signing-keys.ts';
import { createOAuthFailure } from './oauth-error.ts';

export const ID_TOKEN_ALGORITHM = 'RS256';
const LIFETIME_SECONDS = 3600;

export interface IdTokenFacts {
  readonly userId: string;
  readonly clientId: string;
  readonly nonce: string | undefined;
  readonly authTimeMs: number;
  readonly accessToken: string;
  readonly nowMs: number;
}

/**
 * Finds the key for the identity token of a grant; undefined unless `openid` is granted. Call it before the grant is redeemed: if
 * it failed afterwards, the client would repeat the exchange, and that reuse would revoke its tokens.
 */
export async function findIdTokenKey(
  { signingKeys }: ProtocolDependencies,
  scope: string,
): Promise<SigningKey | undefined> {
  return scope.split(' ').includes('openid') ? await signingKeys.findCurrent() : undefined;
}

/** Returns undefined without a key (`findIdTokenKey`). */
export async function createIdToken(
  { issuer }: ProtocolDependencies,
  key: SigningKey | undefined,
  facts: IdTokenFacts,
): Promise<string | undefined> {
  if (key === undefined) return undefined;
  const nowSeconds = Math.floor(facts.nowMs / 1000);
  const claims = {
    auth_time: Math.floor(facts.authTimeMs / 1000),
    at_hash: computeTokenHash(facts.accessToken),
    ...(facts.nonce === undefined ? {} : { nonce: facts.nonce }),
  };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: ID_TOKEN_ALGORITHM, kid: key.kid, typ: 'JWT' })
    .setIssuer(issuer)
    .setSubject(facts.userId)
    .setAudience(facts.clientId)
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + LIFETIME_SECONDS)
    .sign(key.privateKey);
}

/** The person whom a client expects. */
export interface HintedPerson {
  /** Undefined if the key of the hint is no longer published: its claims cannot be verified, so anyone may have made it. */
  readonly userId: string | undefined;
}

/**
 * Finds the person of `id_token_hint` (§3.1.2.1), which must be an identity token of this client, but may have expired. Throws
 * `invalid_request` for any other text.
 */
export async function readIdTokenHint(
  { issuer, signingKeys }: ProtocolDependencies,
  { hint, clientId }: { readonly hint: string; readonly clientId: string },
): Promise<HintedPerson> {
  const keys = createLocalJWKSet({ keys: await signingKeys.listPublic() });
  const expected = { issuer, audience: clientId, algorithms: [ID_TOKEN_ALGORITHM], requiredClaims: ['sub'] };
  try {
    // With a clock at 1970, no token has expired.
    const { payload } = await jwtVerify(hint, keys, { ...expected, currentDate: new Date(0) });
    return { userId: payload.sub };
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey && isAddressedTo(clientId, { hint, issuer }))
      return { userId: undefined };
    throw createOAuthFailure('invalid_request', 'id_token_hint is no identity token of this client');
  }
}

/** Whether the token names this issuer and client; its signature is not verified. */
function isAddressedTo(
  clientId: string,
  { hint, issuer }: { readonly hint: string; readonly issuer: string },
): boolean {
  try {
    const { iss, aud } = decodeJwt(hint);
    return iss === issuer && [aud].flat().includes(clientId);
  } catch {
    return false;
  }
}

/** Computes `at_hash` (§3.1.3.6): the left half of the SHA-256, in base64url. */
export function computeTokenHash(token: string): string {
  return hash('sha256', token, 'buffer').subarray(0, 16).toString('base64url');
}
