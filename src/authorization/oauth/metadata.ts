/** Describes this server for clients that configure themselves (RFC 8414, OpenID Connect Discovery). */

import { API_SCOPES, SCOPES } from '../applications/scope.ts';
import { ID_TOKEN_ALGORITHM } from './protocol/id-token.ts';
import { GRANTS } from './token.ts';

export function describeServer(issuer: string): object {
  const authentication = ['client_secret_basic', 'client_secret_post'];
  return {
    issuer,
    authorization_endpoint: `${issuer}/oauth/authorize`,
    token_endpoint: `${issuer}/oauth/token`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
    introspection_endpoint: `${issuer}/oauth/introspect`,
    device_authorization_endpoint: `${issuer}/oauth/device`,
    userinfo_endpoint: `${issuer}/oauth/userinfo`,
    jwks_uri: `${issuer}/oauth/jwks`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: [...GRANTS.keys()],
    scopes_supported: SCOPES,
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: [...authentication, 'none'],
    revocation_endpoint_auth_methods_supported: [...authentication, 'none'],
    introspection_endpoint_auth_methods_supported: authentication,
    authorization_response_iss_parameter_supported: true,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [ID_TOKEN_ALGORITHM],
    claims_supported: [
      'iss',
      'sub',
      'aud',
      'exp',
      'iat',
      'auth_time',
      'nonce',
      'at_hash',
      'preferred_username',
      'name',
      'email',
      'email_verified',
    ],
    prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    claims_parameter_supported: false,
  };
}

/** Names the authorization server that the resource API trusts (RFC 9728). */
export function describeResource(baseUrl: string, issuer: string): object {
  return {
    resource: baseUrl,
    authorization_servers: [issuer],
    scopes_supported: API_SCOPES,
    bearer_methods_supported: ['header', 'body', 'query'],
    resource_name: 'Trivet',
  };
}
