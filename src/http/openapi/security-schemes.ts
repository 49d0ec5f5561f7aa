/** Describes in the OpenAPI document how callers prove who they are. Scopes are listed at each operation and in docs/reference/oauth.md. */
import type { Json } from './api-descriptions.ts';

export function describeSecuritySchemes(authUrl: string, scopes: readonly string[]): Json {
  return {
    bearer: {
      type: 'http',
      scheme: 'bearer',
      description: 'A personal access token or an OAuth access token, in the header Authorization.',
    },
    oauth2: {
      type: 'oauth2',
      description: 'The authorization code flow with PKCE, and its refresh.',
      flows: {
        authorizationCode: {
          authorizationUrl: `${authUrl}/oauth/authorize`,
          tokenUrl: `${authUrl}/oauth/token`,
          refreshUrl: `${authUrl}/oauth/token`,
          scopes: Object.fromEntries(scopes.map((scope) => [scope, `Allows operations that need ${scope}.`])),
        },
      },
    },
    client: {
      type: 'http',
      scheme: 'basic',
      description: 'The client_id and client_secret of an application (RFC 6749 section 2.3.1).',
    },
    session: {
      type: 'apiKey',
      in: 'cookie',
      name: '__Host-trivet_session',
      description:
        'The session cookie of a person who signed in with a browser. Over plain HTTP its name is trivet_session.',
    },
  };
}
