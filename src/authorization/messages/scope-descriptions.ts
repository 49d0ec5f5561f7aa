/** What each scope allows, in a person's words. */
import type { Scope } from '../applications/scope.ts';

export interface ScopeDescription {
  readonly title: string;
  readonly about: string;
  /** `write` changes things, `danger` could lock its user out or send data elsewhere. */
  readonly power: 'read' | 'write' | 'danger';
}

const scopes: Readonly<Record<Scope, ScopeDescription>> = {
  all_user: { title: 'Your profile', about: 'See your login, name and email address.', power: 'read' },
  all_key: { title: 'Your SSH keys', about: 'See, add and remove keys that can push code as you.', power: 'danger' },
  all_groups: { title: 'Your organizations', about: 'See and change the organizations you belong to.', power: 'write' },
  all_projects: { title: 'Your projects', about: 'See, create and change your projects.', power: 'write' },
  all_pr: { title: 'Pull requests', about: 'See, open, review and merge pull requests as you.', power: 'write' },
  all_issue: { title: 'Issues', about: 'See, open and change issues as you.', power: 'write' },
  all_note: { title: 'Comments', about: 'See and write comments as you.', power: 'write' },
  all_hook: {
    title: 'Webhooks',
    about: 'See, create and delete webhooks, which send what happens in your repositories to other servers.',
    power: 'danger',
  },
  all_repository: {
    title: 'Your repositories',
    about: 'See, create, change and delete your repositories.',
    power: 'write',
  },
  openid: {
    title: 'Sign you in',
    about: 'Learn that it is you, so that you can sign in with this account.',
    power: 'read',
  },
  admin: {
    title: 'Your rights as an administrator',
    about: 'Use the other scopes on every account: all repositories, their webhooks and webhook passwords.',
    power: 'danger',
  },
  predict: { title: 'Predictions', about: 'Ask how long requests will take, and nothing else.', power: 'read' },
  observe: { title: 'Observations', about: 'Report how long requests took, and nothing else.', power: 'write' },
  'events:write': {
    title: 'Events of your repositories',
    about: 'Announce events, which webhooks then deliver, and nothing else.',
    power: 'write',
  },
  'models:read': {
    title: 'Models',
    about: 'See and export the models that predict, as an administrator.',
    power: 'read',
  },
  'models:write': {
    title: 'Changing models',
    about: 'Import, promote and roll back the models that predict, as an administrator.',
    power: 'danger',
  },
  'admin:people': {
    title: 'People and organizations',
    about: 'See, create, change and disable all accounts but those of administrators.',
    power: 'danger',
  },
  'admin:audit': { title: 'The audit log', about: 'See what happened to all accounts.', power: 'read' },
  'admin:hooks': {
    title: 'Webhooks of all repositories',
    about: 'See, create, change, test and delete repositories and webhooks of everyone; not see their passwords.',
    power: 'danger',
  },
  'admin:applications': {
    title: 'All applications',
    about: 'See, register, disable and delete the applications of everyone, and change their secrets.',
    power: 'danger',
  },
};

export function describeScope(scope: string): ScopeDescription {
  return (
    (Object.hasOwn(scopes, scope) ? scopes[scope as Scope] : undefined) ?? {
      title: scope,
      about: '',
      power: 'write',
    }
  );
}
