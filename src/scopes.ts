/**
 * Decides what the narrow scopes allow, and refuses calls beyond them with 403. The refusal names the scope that the call
 * needs.
 */
import { Failure } from './errors.ts';
import type { Identity } from './identity.ts';

/** The scopes for which a token's person must administer the service at the moment of the call. */
export const ADMINISTRATOR_SCOPES = [
  'admin',
  'admin:people',
  'admin:audit',
  'admin:hooks',
  'admin:applications',
  'models:read',
  'models:write',
] as const;

export const NARROW_SCOPES = [
  'profile',
  'email',
  'predict',
  'observe',
  'events:write',
  'models:read',
  'models:write',
  'admin:people',
  'admin:audit',
  'admin:hooks',
  'admin:applications',
] as const;

export type NarrowScope = (typeof NARROW_SCOPES)[number];

/** For each scope, the wider scopes that include it. */
const WIDER: Readonly<Record<NarrowScope, readonly string[]>> = {
  profile: ['all_user'],
  email: ['all_user'],
  predict: [],
  observe: [],
  'events:write': ['all_hook'],
  'models:read': ['models:write', 'admin'],
  'models:write': ['admin'],
  'admin:people': ['admin'],
  'admin:audit': ['admin'],
  'admin:hooks': ['admin'],
  'admin:applications': ['admin'],
};

const ADMINISTRATORS: ReadonlySet<string> = new Set(ADMINISTRATOR_SCOPES);
const NARROW: ReadonlySet<string> = new Set(NARROW_SCOPES);

export function isAdministratorScope(scope: string): boolean {
  return ADMINISTRATORS.has(scope);
}

/** Whether a token may do what this scope allows. */
export function permits({ scopes, repositories }: Pick<Identity, 'scopes' | 'repositories'>, scope: string): boolean {
  if (scopes.includes(scope)) return true;
  if (scope === 'predict' || scope === 'observe')
    // Every token without narrow scopes may predict and report, as before narrow scopes existed.
    return repositories === undefined && scopes.some((held) => !NARROW.has(held));
  return NARROW.has(scope) && WIDER[scope as NarrowScope].some((wider) => scopes.includes(wider));
}

/** RFC 6750 §3.1. Names the scope that the call needs. */
export function refuseScope(scope: string): Failure {
  const whose = isAdministratorScope(scope) ? ' of a person who administers the service' : '';
  return new Failure('forbidden', `Forbidden: the token needs the scope ${scope}${whose}`, {
    headers: { 'WWW-Authenticate': `Bearer realm="trivet", error="insufficient_scope", scope="${scope}"` },
    oauthError: 'insufficient_scope',
  });
}
