import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findFlaws, findReasonToSkipPages } from '../../../test/support/browser.ts';
import { signIn, useBrowser } from '../../../test/support/browser-pages.ts';
import { findChineseFlaws } from '../../../test/support/chinese-pages.ts';
import { giveConsent } from '../../../test/support/give-consent.ts';
import { addUser, type PageService, startPageService } from '../../../test/support/page-service.ts';
import type { User } from '../accounts/user-store.ts';
import { createApplication } from '../applications/application.ts';
import { createPasswordLink } from '../password-links/password-link.ts';
import { createSetupLink } from '../sign-in/setup-routes.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';

/** What people brought. */
const CONTENT =
  'ada grace Ada Grace Lovelace Hopper Harbour CI Builds your repositories ci example org Backup Chrome Linux unknown'.split(
    ' ',
  );

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('axe finds nothing on any page in both languages, on a phone and on a desktop, light and dark', async (t) => {
    await using service = await startPageService({ hostname: 'localhost', withMail: true });
    const setupLink = await createSetupLink(service.signIn.context);
    const page = await browser.openPage(t, { bypassCSP: true });
    const content = [...CONTENT];
    const check = (title: string, url: string) =>
      t.test(title, async () => {
        await page.goto(url);
        assert.deepEqual(await findFlaws(page), []);
        assert.deepEqual(await findChineseFlaws(page, content), []);
      });
    await check('set-up', setupLink!);
    const ada = await addUser(service, 'ada', true);
    await addUser(service, 'grace');
    const { clientId, clientSecret = '' } = await fillAccount(service, ada);
    // The page of an application shows how its secret ends.
    content.push(...(clientSecret.slice(-4).match(/\w+/g) ?? []));
    await check('/sign-in', `${service.url}/sign-in`);
    await check('/forgot-password', `${service.url}/forgot-password`);
    await check('a mail is on its way', `${service.url}/forgot-password?done=sent`);
    const { url, statement } = createPasswordLink(service.signIn.context, ada, 'reset');
    await service.store.writeAll([statement]);
    await check('/password', url);
    await t.test('a refused sign-in', async () => {
      await signIn(page, service.url, 'wrong password');
      assert.deepEqual(await findFlaws(page), []);
    });
    await signIn(page, service.url);
    const paths = [
      '/account',
      '/account?done=saved',
      '/account/security',
      '/account/sessions',
      '/account/authorizations',
      '/account/tokens',
      '/account/applications',
      '/account/applications/new',
      `/account/applications/${clientId}`,
      '/account/activity',
      '/admin/users',
      '/admin/users?q=gr&state=active',
      '/admin/users/grace',
      '/admin/users/grace/disable',
      '/admin/users/grace/password-link',
      '/admin/activity',
      '/admin/activity?user=ada&kind=sign_in&since=2026-01-01T10:00',
      '/admin/activity?user=unknown',
      '/account/nothing',
    ];
    for (const path of paths) await check(path, service.url + path);
    await t.test('a refused form', async () => {
      await page.goto(`${service.url}/account/tokens`);
      await page.fill('[name=name]', 'no scope');
      await page.click('text=Create token');
      assert.deepEqual(await findFlaws(page), []);
    });
    await t.test('the authenticator app', async () => {
      await page.goto(`${service.url}/account/security`);
      await page.click('text=Set up an authenticator app');
      assert.deepEqual(await findFlaws(page), []);
    });
  });
});

async function fillAccount(
  { store, world }: PageService,
  { id: userId }: User,
): Promise<{ readonly clientId: string; readonly clientSecret: string | undefined }> {
  const form = { name: 'Harbour CI', homepage: 'https://ci.example.org', description: 'Builds your repositories.' };
  const redirectUris = ['https://ci.example.org/callback'];
  const { application, clientSecret } = await createApplication(store, world, {
    form: { ...form, redirectUris, isPublic: false },
    actor: { userId },
  });
  const token = { userId, name: 'Backup', scopes: ['all_user', 'all_hook'], expiresAtMs: undefined } as const;
  await createPersonalToken(store, world, token);
  const { clientId } = application;
  await giveConsent(store, { userId, clientId, scopes: ['all_user', 'all_hook'] });
  return { clientId, clientSecret };
}
