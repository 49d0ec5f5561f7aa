/** Lists the pages that the tests with a real browser open: the paths of their routes, by the file of the test. */
import assert from 'node:assert/strict';
import { relative } from 'node:path';
import { after } from 'node:test';

const HOOK = '/webhooks/:owner/:repo/:id{[0-9]{1,15}}';

export const OPENED_PAGES: Readonly<Record<string, readonly string[]>> = {
  'src/console/console-pages.test.ts': [
    '/',
    '/webhooks',
    '/webhooks/new',
    '/webhooks/:owner/:repo',
    '/webhooks/:owner/:repo/new',
    HOOK,
    `${HOOK}/change`,
    `${HOOK}/deliveries`,
    `${HOOK}/deliveries/:delivery{[0-9]{1,16}}`,
    '/models',
    '/models/model',
    '/models/accuracy',
    '/models/errors',
    '/models/what-if',
    '/models/capacity',
    '/models/promote',
    '/models/rollback',
  ],
  'src/console/models/capacity-pages.test.ts': ['/models/capacity'],
  'src/console/models/effect-pages.test.ts': ['/models/effects'],
  'src/authorization/account-pages/accessibility.test.ts': [
    '/setup',
    '/sign-in',
    '/sign-in/second-step',
    '/forgot-password',
    '/password',
    '/refused',
    '/account',
    '/account/security',
    '/account/security/totp',
    '/account/security/recovery-codes',
    '/account/sessions',
    '/account/authorizations',
    '/account/tokens',
    '/account/applications',
    '/account/applications/new',
    '/account/applications/:clientId{app_[A-Za-z0-9_-]+}',
    '/account/activity',
    '/admin/users',
    '/admin/users/:login',
    '/admin/users/:login/:change',
    '/admin/activity',
  ],
  'src/authorization/oauth/consent-pages.test.ts': ['/oauth/authorize', '/oauth/authorize/continue', '/device'],
  'test/reference/api-pages.test.ts': ['/docs/api', '/docs/api/events'],
};

/** Routes that no browser opens in a test. */
export const UNOPENED_PAGES: readonly (readonly [path: string, reason: string])[] = [
  ['/admin/users-export', 'it answers with a file'],
  ['/admin/activity/export', 'it answers with a file'],
  ['/account/security/upstream/link', 'it is the page of /oauth/authorize/continue, with the address of a provider'],
  ['/sign-in/upstream', 'it leads to another provider'],
  ['/sign-in/upstream/callback', 'it leads to the page that the sign-in was for, or back to the sign-in page'],
];

const opened = new Set<string>();

/** Remembers that a test looked for flaws on this page. */
export function recordOpened(url: string): void {
  opened.add(new URL(url).pathname);
}

/** After the tests of a file: each page that the file is listed with was opened. */
export function checkOpenedPages(): void {
  const file = relative(process.cwd(), process.argv[1] ?? '');
  const isPartOnly = process.execArgv.some((option) => /^--test-(name|skip)-pattern/.test(option));
  // One file runs several others once more there, which are checked where they run by themselves (on-postgres.ts).
  if (isPartOnly || process.env.TRIVET_TEST_ENGINE === 'postgres') return;
  after(() => {
    const listed = OPENED_PAGES[file] ?? [];
    assert.ok(listed.length > 0, `${file} opens pages: list them in test/support/rules/opened-pages.ts`);
    const missed = listed.filter((path) => ![...opened].some((one) => matchPath(path).test(one)));
    assert.deepEqual(missed, [], `${file} is listed with pages that it does not open`);
  });
}

/** `/webhooks/:owner/:id{[0-9]+}` of a route as an expression. */
export function matchPath(path: string): RegExp {
  const parts = path.split('/').map((part) => part.replace(/^:\w+\{(.*)\}$/, '(?:$1)').replace(/^:\w+$/, '[^/]+'));
  return new RegExp(`^${parts.join('/')}$`);
}
