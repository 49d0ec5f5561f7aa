/** Describes each scope in English. */
import type { Scope } from '../applications/scope.ts';

export interface ScopeDescription {
  readonly title: string;
  readonly about: string;
}

export const scopes: Readonly<Record<Scope, ScopeDescription>> = {
  all_user: { title: 'Your profile', about: 'See your login, name and email address.' },
  all_key: { title: 'Your SSH keys', about: 'See, add and remove keys that can push code as you.' },
  all_groups: { title: 'Your organizations', about: 'See and change the organizations you belong to.' },
  all_projects: { title: 'Your projects', about: 'See, create and change your projects.' },
  all_pr: { title: 'Pull requests', about: 'See, open, review and merge pull requests as you.' },
  all_issue: { title: 'Issues', about: 'See, open and change issues as you.' },
  all_note: { title: 'Comments', about: 'See and write comments as you.' },
  all_hook: {
    title: 'Webhooks',
    about: 'See, create and delete webhooks, which send what happens in your repositories to other servers.',
  },
  all_repository: {
    title: 'Your repositories',
    about: 'See, create, change and delete your repositories.',
  },
  openid: {
    title: 'Sign you in',
    about: 'Learn that it is you, so that you can sign in with this account.',
  },
  admin: {
    title: 'Your rights as an administrator',
    about: 'Use the other scopes on every account: all repositories, their webhooks and webhook passwords.',
  },
  profile: { title: 'Your name', about: 'See your login and name, and nothing else.' },
  email: { title: 'Your email address', about: 'See your email address once it is verified, and nothing else.' },
  predict: { title: 'Predictions', about: 'Ask how long requests will take, and nothing else.' },
  observe: { title: 'Observations', about: 'Report how long requests took, and nothing else.' },
  'events:write': {
    title: 'Events of your repositories',
    about: 'Publish events, which webhooks then deliver, and nothing else.',
  },
  'models:read': {
    title: 'Models',
    about: 'See and export the models that predict, as an administrator.',
  },
  'models:write': {
    title: 'Changing models',
    about: 'Import, promote and roll back the models that predict, as an administrator.',
  },
  'admin:people': {
    title: 'People and organizations',
    about: 'See, create, change and disable all accounts but those of administrators.',
  },
  'admin:audit': { title: 'The audit log', about: 'See what happened to all accounts.' },
  'admin:hooks': {
    title: 'Webhooks of all repositories',
    about: 'See, create, change, test and delete repositories and webhooks of everyone; not see their passwords.',
  },
  'admin:applications': {
    title: 'All applications',
    about: 'See, register, disable and delete the applications of everyone, and change their secrets.',
  },
};
