/** Makes the error answers of OAuth: `invalid_grant`, `invalid_scope` and others (RFC 6749 §5.2). */
import { Failure, type FailureCode } from '../../../errors.ts';

export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'invalid_scope'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'access_denied'
  | 'authorization_pending'
  | 'slow_down'
  | 'expired_token'
  | 'login_required'
  | 'consent_required'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'unsupported_token_type'
  | 'temporarily_unavailable';

const CODE_OF: Partial<Record<OAuthErrorCode, FailureCode>> = {
  invalid_client: 'unauthenticated',
  invalid_token: 'unauthenticated',
  insufficient_scope: 'forbidden',
  temporarily_unavailable: 'unavailable',
};

export function createOAuthFailure(
  oauthError: OAuthErrorCode,
  description: string,
  headers: Readonly<Record<string, string>> = {},
): Failure {
  const details = { oauthError, ...(Object.keys(headers).length > 0 ? { headers } : {}) };
  return new Failure(CODE_OF[oauthError] ?? 'invalid', description, details);
}

/** One description for every reason: a guesser must not learn which check failed. */
export function refuseGrant(): Failure {
  const reasons = 'unknown, used, expired, revoked or was issued to another client';
  const description = `The grant is ${reasons}, or redirect_uri or code_verifier does not belong to it`;
  return createOAuthFailure('invalid_grant', description);
}

export function refuseUnknownScopes(): Failure {
  return createOAuthFailure(
    'invalid_scope',
    'None of the scopes is known (scopes_supported of the metadata has all), and profile and email need openid',
  );
}

export function refuseWiderScope(): Failure {
  const description = 'The scope is wider than the one that was granted: without scope, the answer has all of that';
  return createOAuthFailure('invalid_scope', description);
}

/** `name`: one that is known here. A name that a stranger made up may have characters that no description may (RFC 6749 §5.2). */
export function refuseRepeatedParameter(name: string): Failure {
  return createOAuthFailure('invalid_request', `The parameter ${name} was sent more than once`);
}

/** RFC 6749 §5.2: 401, and the challenge of the scheme that was used. */
export function refuseClient(): Failure {
  return createOAuthFailure('invalid_client', 'Client authentication failed', {
    'WWW-Authenticate': 'Basic realm="trivet", charset="UTF-8"',
  });
}
