/**
 * Compares a PKCE code verifier with its challenge (RFC 7636). authorize-request.ts decides whether PKCE is required, and refuses
 * `plain`.
 */
import { hash } from 'node:crypto';
import { isSameText } from '../../accounts/secret-text.ts';

/**
 * 43 to 128 unreserved characters (§4.1). Also accepts the `+`, `/` and `=` of base64, because some clients encode their random
 * bytes in that way (git-credential-oauth before 0.11). The security depends only on the length and the digest.
 */
const VERIFIER = /^[A-Za-z0-9\-._~+/=]{43,128}$/;
/** §4.2: the base64url of a SHA-256 without padding. */
const CHALLENGE = /^[A-Za-z0-9\-_]{43}$/;

export function isCodeChallenge(text: string): boolean {
  return CHALLENGE.test(text);
}

/** Verifies as in §4.6. Refuses a verifier without a challenge: an attacker removed the challenge (RFC 9700 §4.8.2). */
export function isVerifierRight(challenge: string | null, verifier: string | undefined): boolean {
  if (challenge === null) return verifier === undefined;
  if (verifier === undefined || !VERIFIER.test(verifier)) return false;
  return isSameText(hash('sha256', verifier, 'base64url'), challenge);
}
