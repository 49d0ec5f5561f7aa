/** Makes the error responses of OAuth: `invalid_grant`, `invalid_scope` and others (RFC 6749 §5.2). */
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

/** Has one description for every reason, so that a guesser does not learn which check failed. */
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
  const description =
    'The scope is wider than the granted one; leave out the parameter scope to get all of the granted scope';
  return createOAuthFailure('invalid_scope', description);
}

/** `name` must be a known parameter: other names may have characters that RFC 6749 §5.2 forbids in a description. */
export function refuseRepeatedParameter(name: string): Failure {
  return createOAuthFailure('invalid_request', `The parameter ${name} was sent more than once`);
}

/** 401 with a challenge for Basic authentication (RFC 6749 §5.2). */
export function refuseClient(): Failure {
  return createOAuthFailure('invalid_client', 'Client authentication failed', {
    'WWW-Authenticate': 'Basic realm="trivet", charset="UTF-8"',
  });
}
