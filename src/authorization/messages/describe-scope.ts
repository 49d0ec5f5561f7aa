/** Describes a scope for the consent page: its title, its text, and how much power it gives. */
import type { Scope } from '../applications/scope.ts';
import type { Messages } from './messages.ts';
import type { ScopeDescription } from './scope-descriptions.ts';

/** `write` can change data; `danger` could lock out its user or send data elsewhere. */
export type ScopePower = 'read' | 'write' | 'danger';

const POWERS: Readonly<Record<Scope, ScopePower>> = {
  all_user: 'read',
  all_key: 'danger',
  all_groups: 'write',
  all_projects: 'write',
  all_pr: 'write',
  all_issue: 'write',
  all_note: 'write',
  all_hook: 'danger',
  all_repository: 'write',
  openid: 'read',
  admin: 'danger',
  profile: 'read',
  email: 'read',
  predict: 'read',
  observe: 'write',
  'events:write': 'write',
  'models:read': 'read',
  'models:write': 'danger',
  'admin:people': 'danger',
  'admin:audit': 'read',
  'admin:hooks': 'danger',
  'admin:applications': 'danger',
};

export function describeScope({ scopes }: Messages, scope: string): ScopeDescription & { readonly power: ScopePower } {
  if (!Object.hasOwn(scopes, scope)) return { title: scope, about: '', power: 'write' };
  return { ...scopes[scope as Scope], power: POWERS[scope as Scope] };
}
