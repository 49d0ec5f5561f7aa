/**
 * Compares a PKCE code verifier with its challenge (RFC 7636). Whether PKCE is required, and that `plain` is refused, is decided
 * in authorize-request.ts.
 */
import { hash } from 'node:crypto';
import { isSameText } from '../../accounts/secret-text.ts';

/**
 * §4.1: 43 to 128 unreserved characters, and the `+`, `/` and `=` of base64 as well: clients that are in use encode
 * their random bytes so (git-credential-oauth before 0.11). What guards the code is the length and the digest.
 */
const VERIFIER = /^[A-Za-z0-9\-._~+/=]{43,128}$/;
/** §4.2: the base64url of a SHA-256 without padding. */
const CHALLENGE = /^[A-Za-z0-9\-_]{43}$/;

export function isCodeChallenge(text: string): boolean {
  return CHALLENGE.test(text);
}

/** §4.6. A verifier without a challenge is refused too: the challenge was stripped on its way (RFC 9700 §4.8.2). */
export function isVerifierRight(challenge: string | null, verifier: string | undefined): boolean {
  if (challenge === null) return verifier === undefined;
  if (verifier === undefined || !VERIFIER.test(verifier)) return false;
  return isSameText(hash('sha256', verifier, 'base64url'), challenge);
}
