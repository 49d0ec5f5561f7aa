/** Lists the settings of authorization: lifetimes of tokens and codes, retention of the audit log, the upstream provider. */
import { choice, integer, optional, setting, text } from './setting.ts';

export const authorizationSettings = {
  accessTokenSeconds: setting({
    env: 'ACCESS_TOKEN_SECONDS',
    about: 'Lifetime of an access token, in seconds.',
    schema: integer(60, 31_536_000),
    fallback: '1296000',
  }),
  codeSeconds: setting({
    env: 'AUTHORIZATION_CODE_SECONDS',
    about: 'Lifetime of an authorization code, in seconds.',
    schema: integer(10, 600),
    fallback: '60',
  }),
  refreshIdleDays: setting({
    env: 'REFRESH_IDLE_DAYS',
    about: 'Days after which an unused refresh token expires.',
    schema: integer(1, 3650),
    fallback: '90',
  }),
  refreshMaxDays: setting({
    env: 'REFRESH_MAX_DAYS',
    about:
      'How long an application can refresh its tokens after an authorization, in days; then it must send the user to `/oauth/authorize` again.',
    schema: integer(1, 3650),
    fallback: '365',
  }),
  refreshGraceSeconds: setting({
    env: 'REFRESH_GRACE_SECONDS',
    about: 'For how many seconds a used refresh token still returns the same new tokens, in case the answer was lost.',
    schema: integer(0, 600),
    fallback: '30',
  }),
  auditDays: setting({
    env: 'AUDIT_RETENTION_DAYS',
    about: 'How long an event stays in the audit log, in days.',
    schema: integer(1, 36_500),
    fallback: '365',
  }),
  upstreamIssuer: optional({
    env: 'UPSTREAM_ISSUER',
    about: 'Issuer of an OpenID provider that people may sign in with too, exactly as its metadata names it.',
    schema: text.refine((value) => URL.canParse(value) && /^https?:/.test(value), 'must be an http or https URL'),
  }),
  upstreamName: setting({
    env: 'UPSTREAM_NAME',
    about: 'What the pages call that provider.',
    schema: text,
    fallback: 'your company account',
  }),
  upstreamClientId: optional({
    env: 'UPSTREAM_CLIENT_ID',
    about: 'Client id of this service at the provider. Its redirect URI there is AUTH_URL/sign-in/upstream/callback.',
    schema: text,
  }),
  upstreamClientSecret: optional({
    env: 'UPSTREAM_CLIENT_SECRET',
    about: 'Client secret at that provider; without it this service is a public client there.',
    schema: text,
    secret: true,
  }),
  upstreamScope: setting({
    env: 'UPSTREAM_SCOPE',
    about: 'Scopes that are requested from that provider.',
    schema: text,
    fallback: 'openid profile email',
  }),
  upstreamSignUp: setting({
    env: 'UPSTREAM_SIGN_UP',
    about:
      'Whether a person of the provider who has no linked account here gets a new account (`open`) or is refused (`closed`).',
    schema: choice('closed', 'open'),
    fallback: 'closed',
  }),
} as const;
