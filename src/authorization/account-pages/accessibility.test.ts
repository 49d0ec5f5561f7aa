import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TOTP } from 'otpauth';
import { giveConsent } from '../../../test/support/authorization/give-consent.ts';
import { findReasonToSkipPages } from '../../../test/support/pages/browser.ts';
import { fillSignIn, signIn, useBrowser } from '../../../test/support/pages/browser-pages.ts';
import {
  ALL_PAGES,
  findPageFlaws,
  findShownFlaws,
  PAGE_LANGUAGES,
  PAGE_LIMIT_MS,
  speakTo,
} from '../../../test/support/pages/page-flaws.ts';
import { addUser, type PageService, startPageService } from '../../../test/support/pages/page-service.ts';
import type { User } from '../accounts/user-store.ts';
import { createApplication } from '../applications/application.ts';
import { createPasswordLink } from '../password-links/password-link.ts';
import { createSetupLink } from '../sign-in/setup-routes.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';

/** Names and texts that people entered. */
const CONTENT =
  'ada grace Ada Grace Lovelace Hopper Harbour CI Builds your repositories ci example org Backup Chrome Linux unknown'.split(
    ' ',
  );

/** Pages show this URL; no one calls it. */
const UPSTREAM = {
  issuer: 'https://login.example.org',
  clientId: 'trivet',
  clientSecret: undefined,
  name: 'Harbour',
  scope: 'openid',
  signUp: 'open',
} as const;

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test(
    'axe finds nothing on any page in both languages, on a phone and on a desktop, light and dark',
    ALL_PAGES,
    async (t) => {
      await using service = await startPageService({ hostname: 'localhost', withMail: true, upstream: UPSTREAM });
      const setupLink = await createSetupLink(service.signIn.context);
      const page = await browser.openPage(t, { bypassCSP: true });
      const content = [...CONTENT];
      const check = (title: string, url: string) =>
        t.test(title, { timeout: PAGE_LIMIT_MS }, async () => {
          await page.goto(url);
          assert.deepEqual(await findPageFlaws(page, content), []);
        });
      await check('set-up', setupLink!);
      const ada = await addUser(service, 'ada', true);
      await addUser(service, 'grace');
      const { clientId, clientSecret = '' } = await fillAccount(service, ada);
      // The page of an application shows the last characters of its secret.
      content.push(...(clientSecret.slice(-4).match(/\w+/g) ?? []));
      await check('/sign-in', `${service.url}/sign-in`);
      await check('/forgot-password', `${service.url}/forgot-password`);
      await check('a mail is on its way', `${service.url}/forgot-password?done=sent`);
      const { url, statement } = createPasswordLink(service.signIn.context, ada, {
        purpose: 'reset',
        mailedTo: null,
      });
      await service.store.writeAll([statement]);
      await check('/password', url);
      for (const language of PAGE_LANGUAGES)
        await t.test(`a refused sign-in in ${language}`, async () => {
          await speakTo(page, language, service.url);
          await signIn(page, service.url, 'wrong password');
          assert.deepEqual(await findShownFlaws(page, { language, content }), []);
        });
      await speakTo(page, 'en', service.url);
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
        '/refused',
        '/account/nothing',
      ];
      for (const path of paths) await check(path, service.url + path);
    },
  );

  for (const language of PAGE_LANGUAGES)
    test(`axe finds nothing in ${language} on refused forms and on the pages of the second step`, async (t) => {
      await using service = await startPageService();
      await addUser(service, 'ada');
      const page = await browser.openPage(t, { bypassCSP: true });
      await speakTo(page, language, service.url);
      const check = async (title: string, content: readonly string[] = []) =>
        assert.deepEqual(await findShownFlaws(page, { language, content: [...CONTENT, ...content] }), [], title);
      const press = (action: string) => page.click(`form[action="${action}"] button:not([type=button])`);
      await signIn(page, service.url);
      await page.goto(`${service.url}/account/tokens`);
      await page.fill('[name=name]', 'no scope');
      await press('/account/tokens');
      await check('a refused form');
      await page.goto(`${service.url}/account/security`);
      await press('/account/security/totp');
      await check('the authenticator app');
      const seed = (await page.innerText('#totp-key')).replaceAll(' ', '');
      const digits = () => new TOTP({ secret: seed }).generate({ timestamp: service.world.nowMs() });
      await page.fill('[name=code]', digits());
      await press('/account/security/totp/confirm');
      assert.equal(await page.locator('.codes code').count(), 10);
      await check('recovery codes');
      await page.goto(`${service.url}/account/security`);
      await check('the second step is on');
      await press('/sign-out');
      await fillSignIn(page);
      await check('the second step');
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
