/** Lists the scopes, reads them from a request, and says which of them need a person or an administrator. */
import { isAdministratorScope, NARROW_SCOPES, permits } from '../../scopes.ts';

/**
 * GitCode's scope names; `openid` for an identity token; `admin`, without which a token of an administrator has only an ordinary
 * person's rights; and the narrow scopes, for parts of the profile and for machines. `formatScope` keeps this order.
 */
export const SCOPES = [
  'all_user',
  'all_key',
  'all_groups',
  'all_projects',
  'all_pr',
  'all_issue',
  'all_note',
  'all_hook',
  'all_repository',
  'openid',
  'admin',
  ...NARROW_SCOPES,
] as const;

export type Scope = (typeof SCOPES)[number];

/** The scopes of OpenID Connect: an application learns from userinfo who signs in. No call of the resource API takes them. */
const OPENID_SCOPES: ReadonlySet<string> = new Set<Scope>(['openid', 'profile', 'email']);

export function isOpenIdScope(scope: string): boolean {
  return OPENID_SCOPES.has(scope);
}

/** The scopes of the resource API, which personal tokens may have. */
export const API_SCOPES: readonly Scope[] = SCOPES.filter((scope) => !isOpenIdScope(scope));

/**
 * The scope for each name of other code hosts (Gitee; `read_user` is GitLab's). Used only if the request has none of our own
 * scopes but those of OpenID Connect, which these hosts share.
 */
const SCOPE_OF_OTHER_HOST: ReadonlyMap<string, Scope> = new Map([
  ['user_info', 'all_user'],
  ['read_user', 'all_user'],
  ['keys', 'all_key'],
  ['groups', 'all_groups'],
  ['projects', 'all_projects'],
  ['pull_requests', 'all_pr'],
  ['issues', 'all_issue'],
  ['notes', 'all_note'],
  ['hook', 'all_hook'],
]);

/** The scope of a request that names none: at `/oauth/authorize`, of a device, and with client credentials. */
export const DEFAULT_SCOPE: readonly Scope[] = ['all_user'];

/** The scopes that this person can grant: some are for administrators only. */
export function listGrantable(scopes: readonly Scope[], person: { readonly isAdmin: boolean }): readonly Scope[] {
  return person.isAdmin ? scopes : scopes.filter((scope) => !isAdministratorScope(scope));
}

/** Whether a scope needs a person. A token that an application gets for itself has no person. */
export function needsPerson(scope: Scope): boolean {
  return isOpenIdScope(scope) || isAdministratorScope(scope);
}

const ORDER: ReadonlyMap<string, number> = new Map(SCOPES.map((scope, index) => [scope, index]));

export function isScope(name: string): name is Scope {
  return ORDER.has(name);
}

/**
 * Returns the known scopes of a request; if it has none of the resource API, adds those that names of other code hosts mean. May
 * be empty. Drops `profile` and `email` without `openid`: they allow nothing here, but a process of an earlier release would let
 * a token with only these predict.
 */
export function readRequestedScopes(text: string): readonly Scope[] {
  const names = [...new Set(text.split(' '))];
  const known = names.filter(isScope).filter((scope) => names.includes('openid') || !isProfileScope(scope));
  return known.every(isOpenIdScope) ? uniteScopes(known, translateScopes(names)) : sortScopes(known);
}

function isProfileScope(scope: Scope): boolean {
  return scope === 'profile' || scope === 'email';
}

function translateScopes(names: readonly string[]): readonly Scope[] {
  return names.flatMap((name) => SCOPE_OF_OTHER_HOST.get(name) ?? []);
}

/**
 * Returns the scope of a refresh (RFC 6749 §6): those requested scopes that were granted, and narrow ones that a granted scope
 * includes. Undefined if none is left, or if the text names an ungranted scope that the sign-in could have granted.
 */
export function narrowScopes(text: string, granted: readonly Scope[]): readonly Scope[] | undefined {
  const asked = readRequestedScopes(text);
  const within = asked.filter((scope) => granted.includes(scope));
  const beyond = asked.filter((scope) => !allows(granted, scope));
  const names = text.split(' ');
  if (beyond.some((scope) => names.includes(scope) && !mayBeMissing(scope))) return undefined;
  const narrow = asked.filter((scope) => allows(granted, scope) && !allows(within, scope));
  const scopes = uniteScopes(within, narrow);
  return scopes.length === 0 ? undefined : scopes;
}

function allows(scopes: readonly Scope[], scope: Scope): boolean {
  return permits({ scopes, repositories: undefined }, scope);
}

/**
 * Whether a sign-in may have left out this scope although the client requested it: ordinary people are not asked for
 * administrator scopes, and earlier releases did not know `profile` and `email`. Such a client repeats it at each refresh.
 */
function mayBeMissing(scope: Scope): boolean {
  return isAdministratorScope(scope) || isProfileScope(scope);
}

export function formatScope(scopes: readonly Scope[]): string {
  return scopes.join(' ');
}

/** Parses a column of the database, which has only known names. */
export function readScopes(text: string): readonly Scope[] {
  return text === '' ? [] : (text.split(' ') as Scope[]);
}

export function isWithin(asked: readonly string[], granted: readonly string[]): boolean {
  return asked.every((scope) => granted.includes(scope));
}

export function uniteScopes(some: readonly Scope[], more: readonly Scope[]): readonly Scope[] {
  return sortScopes([...new Set([...some, ...more])]);
}

function sortScopes(scopes: readonly Scope[]): readonly Scope[] {
  return [...scopes].sort((a, b) => (ORDER.get(a) ?? 0) - (ORDER.get(b) ?? 0));
}
