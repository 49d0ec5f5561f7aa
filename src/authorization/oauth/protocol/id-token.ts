/** Signs the identity token of a client: who signed in, when, for whom (OpenID Connect Core §2). */
import { hash } from 'node:crypto';
import { SignJWT } from 'jose';
import type { ProtocolDependencies } from '../../tokens/protocol-dependencies.ts';

export const ID_TOKEN_ALGORITHM = 'RS256';
const LIFETIME_SECONDS = 3600;

export interface IdTokenFacts {
  readonly userId: string;
  readonly clientId: string;
  readonly scope: string;
  readonly nonce: string | undefined;
  readonly authTimeMs: number;
  readonly accessToken: string;
  readonly nowMs: number;
}

/** Undefined unless `openid` was granted. */
export async function createIdToken(
  dependencies: ProtocolDependencies,
  facts: IdTokenFacts,
): Promise<string | undefined> {
  if (!facts.scope.split(' ').includes('openid')) return undefined;
  const { kid, privateKey } = await dependencies.signingKeys.findCurrent();
  const nowSeconds = Math.floor(facts.nowMs / 1000);
  const claims = {
    auth_time: Math.floor(facts.authTimeMs / 1000),
    at_hash: computeTokenHash(facts.accessToken),
    ...(facts.nonce === undefined ? {} : { nonce: facts.nonce }),
  };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: ID_TOKEN_ALGORITHM, kid, typ: 'JWT' })
    .setIssuer(dependencies.issuer)
    .setSubject(facts.userId)
    .setAudience(facts.clientId)
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + LIFETIME_SECONDS)
    .sign(privateKey);
}

/** §3.1.3.6: the left half of the digest. */
export function computeTokenHash(token: string): string {
  return hash('sha256', token, 'buffer').subarray(0, 16).toString('base64url');
}
