import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { TOTP } from 'otpauth';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { registerApplication, startAuthorizationServer } from '../../../test/support/authorization-server.ts';
import { findFlaws, findReasonToSkipPages, launchBrowser, VIEWS } from '../../../test/support/browser.ts';
import { createStorePlace, openTestStore } from '../../../test/support/engines.ts';
import { addUser, PASSWORD, type PageService, startPageService } from '../../../test/support/page-service.ts';
import { styleSheet } from '../../pages/assets.ts';
import { createApplication } from '../application.ts';
import { saveConsentStep } from '../consent-store.ts';
import { createPersonalToken } from '../personal-token.ts';
import { createSetupLink } from '../sign-in/setup-routes.ts';
import type { User } from '../user-store.ts';

const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

test('the style sheet is one file below 10 kB as it is sent', async () => {
  await using service = await startPageService();
  const response = await fetch(service.url + styleSheet.path);
  const css = await response.text();
  assert.ok(css.length < 10_240, `${css.length} bytes`);
  assert.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  assert.equal((await fetch(`${service.url}/assets/other-styles.css`)).status, 404);
  assert.doesNotMatch(readFileSync(new URL('../../pages/styles.css', import.meta.url), 'utf8'), /url\(|@import/);
});

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  let browser: Browser;

  before(async () => {
    browser = await launchBrowser();
  });
  after(async () => {
    await browser.close();
  });

  async function openPage(t: TestContext, options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const context = await browser.newContext(options);
    t.after(() => context.close());
    return context.newPage();
  }

  test('axe finds nothing on any page, at 320 px and on a desktop, light and dark', async (t) => {
    await using service = await startPageService({ hostname: 'localhost' });
    const setupLink = await createSetupLink(service.signIn.kit);
    const contexts = await openViews(t, browser);
    await t.test('set-up', () => checkViews(contexts, (page) => page.goto(setupLink!)));
    const ada = await addUser(service, 'ada', true);
    await addUser(service, 'grace');
    const { clientId } = await fillAccount(service, ada);
    const outside = {
      'sign-in': (page: Page) => page.goto(`${service.url}/sign-in`),
      'a refused sign-in': async (page: Page) => signIn(page, service.url, 'wrong password'),
    };
    for (const [title, open] of Object.entries(outside)) await t.test(title, () => checkViews(contexts, open));
    await signIn(contexts[0]!.pages()[0]!, service.url, PASSWORD);
    const state = await contexts[0]!.storageState();
    for (const context of contexts.slice(1)) await context.addCookies(state.cookies);
    const paths = [
      '/',
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
      '/admin/activity',
      '/account/nothing',
    ];
    for (const path of paths) await t.test(path, () => checkViews(contexts, (page) => page.goto(service.url + path)));
    await t.test('a refused form', () =>
      checkViews(contexts, async (page) => {
        await page.goto(`${service.url}/account/tokens`);
        await page.fill('[name=name]', 'no scope');
        await page.click('text=Create token');
      }),
    );
    await t.test('the authenticator app', () =>
      checkViews(contexts, async (page) => {
        await page.goto(`${service.url}/account/security`);
        await page.click('text=Set up an authenticator app');
      }),
    );
  });

  test('axe finds nothing on the consent and device pages', async (t) => {
    const oauth = await startOAuth(t);
    const contexts = await openViews(t, browser);
    for (const context of contexts) await signIn(context.pages()[0]!, oauth.url, PASSWORD);
    await t.test('consent', () => checkViews(contexts, (page) => page.goto(oauth.authorizeUrl())));
    await t.test('device', () => checkViews(contexts, (page) => page.goto(`${oauth.url}/device`)));
    await t.test('an unknown application', () =>
      checkViews(contexts, (page) => page.goto(`${oauth.url}/oauth/authorize?client_id=app_none`)),
    );
  });

  test('an authenticator app is set up, asked for at the next sign-in, and replaced by a recovery code', async (t) => {
    await using service = await startPageService();
    await addUser(service, 'ada');
    const page = await openPage(t, { viewport: { width: 320, height: 640 }, bypassCSP: true });
    await signIn(page, service.url, PASSWORD);
    await page.goto(`${service.url}/account/security`);
    await page.click('text=Set up an authenticator app');
    const seed = (await readText(page, '#totp-key')).replaceAll(' ', '');
    const digits = () => new TOTP({ secret: seed }).generate({ timestamp: service.world.nowMs() });
    await page.getByLabel('six digits').fill(digits());
    await page.getByRole('button', { name: 'Turn on' }).click();
    const codes = await page.locator('.codes code').allInnerTexts();
    assert.equal(codes.length, 10);
    assert.deepEqual(await findFlaws(page), []);
    await page.click('text=I have kept them');
    assert.match(await readText(page), /10 recovery codes left/);

    await page.click('text=Sign out');
    await fillSignIn(page, PASSWORD);
    assert.equal(await page.title(), 'Second step · Trivet');
    assert.deepEqual(await findFlaws(page), []);
    service.world.moveMs(30_000);
    await page.getByLabel('Code').fill(digits());
    await page.click('text=Confirm');
    assert.equal(await page.title(), 'Home · Trivet');
    await page.click('text=Sign out');
    await fillSignIn(page, PASSWORD);
    await page.getByLabel('Code').fill(codes[3]!.toUpperCase().replaceAll('-', ' '));
    await page.click('text=Confirm');
    await page.click('nav >> text=Activity');
    assert.match(await readText(page), /Recovery code used/);
  });

  test('a private scheme is reached by a page with a link, since a form may not redirect there', async (t) => {
    const oauth = await startOAuth(t);
    const page = await openPage(t, { bypassCSP: true });
    await page.goto(oauth.nativeUrl());
    await fillSignIn(page, PASSWORD);
    await page.getByRole('button', { name: 'Allow', exact: true }).click();
    const link = await page.getByRole('link', { name: 'Go on now' }).getAttribute('href');
    assert.match(link ?? '', /^com\.example\.app:\/callback\?code=tvt_/);
    assert.deepEqual(await findFlaws(page), []);
  });

  test('everything but passkeys works without a script', async (t) => {
    await using service = await startPageService();
    await addUser(service, 'ada');
    const page = await openPage(t, { javaScriptEnabled: false });
    await signIn(page, service.url, PASSWORD);
    assert.equal(await page.title(), 'Home · Trivet');

    await page.click('nav >> text=OAuth applications');
    await page.click('text=New application');
    await page.getByLabel('Name', { exact: true }).fill('Harbour CI');
    await page.getByLabel('Redirect addresses').fill('https://ci.example.org/callback');
    await page.click('text=Create application');
    assert.match(await readText(page, '#new-secret'), /^tvt_/);
    await page.getByRole('button', { name: 'New secret' }).click();
    assert.equal(await page.locator('strong', { hasText: 'Ends in' }).count(), 2);
    await page.getByRole('button', { name: 'Delete Ends in' }).first().click();
    assert.equal(await page.locator('strong', { hasText: 'Ends in' }).count(), 1);
    await page.getByLabel('Type Harbour CI to confirm').fill('Harbour CI');
    await page.click('text=Delete application');
    assert.match(await readText(page), /You have no applications yet/);

    await page.click('nav >> text=Personal access tokens');
    await page.getByLabel('Name', { exact: true }).fill('Backup');
    await page.getByLabel('all_repository').check();
    await page.click('text=Create token');
    assert.match(await readText(page, '#new-token'), /^tvt_p_/);
    await page.getByRole('button', { name: 'Delete Backup' }).click();
    assert.match(await readText(page), /no personal access tokens yet/);

    await page.click('nav >> text=Profile');
    await page.getByLabel('Name', { exact: true }).fill('Augusta Ada King');
    await page.click('text=Save');
    assert.match(await readText(page), /Your profile is saved/);
    await page.click('nav >> text=Activity');
    assert.match(await readText(page), /Personal token deleted/);
    await page.click('text=Sign out');
    assert.match(await readText(page), /You have signed out/);
  });

  test('sessions elsewhere are listed and ended', async (t) => {
    await using service = await startPageService();
    await addUser(service, 'ada');
    const here = await openPage(t);
    const there = await openPage(t);
    await signIn(there, service.url, PASSWORD);
    await signIn(here, service.url, PASSWORD);
    await here.goto(`${service.url}/account/sessions`);
    assert.equal(await here.locator('.list > li').count(), 2);
    await here.getByRole('button', { name: /^End Chrome/ }).click();
    assert.equal(await here.locator('.list > li').count(), 1);
    await there.reload();
    assert.match(there.url(), /\/sign-in/);
  });

  test('a passkey is added, signs in without a password, and is removed', async (t) => {
    await using service = await startPageService({ hostname: 'localhost' });
    await addUser(service, 'ada');
    const page = await openPage(t);
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    await signIn(page, service.url, PASSWORD);
    await page.goto(`${service.url}/account/security`);
    await page.getByLabel('Name of the new passkey').fill('Laptop');
    await page.click('text=Add a passkey');
    await page.waitForURL(/done=saved/);
    assert.match(await readText(page, '.list'), /Laptop[\s\S]*never used/);

    await page.click('text=Sign out');
    await page.click('text=Sign in with a passkey');
    await page.waitForURL(`${service.url}/`);
    await page.goto(`${service.url}/account/sessions`);
    assert.match(await readText(page, '.list'), /with passkey/);
    await page.goto(`${service.url}/account/security`);
    assert.match(await readText(page, '.list'), /last used/);
    await page.getByRole('button', { name: 'Remove Laptop' }).click();
    await page.click('text=Sign out');
    await page.click('text=Sign in with a passkey');
    await page.waitForSelector('text=The passkey was not accepted');
  });

  test('a person signs in, sees who asks for what, allows, and arrives at the client; the browser stops nothing', async (t) => {
    const oauth = await startOAuth(t);
    const page = await openPage(t);
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    await page.goto(oauth.authorizeUrl());
    await fillSignIn(page, PASSWORD);
    const asked = await readText(page);
    for (const part of ['Allow Harbour CI?', 'by ada', 'ada', 'Webhooks', 'all_hook', '127.0.0.1', '15 days'])
      assert.ok(asked.includes(part), `the page says "${part}"`);
    await page.getByRole('button', { name: 'Allow', exact: true }).click();
    await page.waitForURL(/\/callback\?/);
    const answer = new URL(page.url()).searchParams;
    assert.match(answer.get('code') ?? '', /^tvt_/);
    assert.equal(answer.get('state'), 'a state');
    assert.equal(answer.get('iss'), oauth.url);

    await page.goto(oauth.url);
    await page.click('text=Sign out');
    await page.goto(oauth.authorizeUrl());
    await fillSignIn(page, PASSWORD);
    await page.waitForURL(/\/callback\?/);
    assert.deepEqual(
      complaints.filter((text) => /Content Security Policy|violates/.test(text)),
      [],
    );
  });

  test('A15 a person denies by keyboard alone; deny comes first', async (t) => {
    const oauth = await startOAuth(t);
    const page = await openPage(t);
    await page.goto(oauth.authorizeUrl());
    await page.waitForSelector('input[name=login]:focus');
    await page.keyboard.type('ada');
    await page.keyboard.press('Tab');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=Allow Harbour CI?');
    const reached: string[] = [];
    for (let count = 0; count < 10 && !reached.includes('Deny'); count += 1) {
      await page.keyboard.press('Tab');
      reached.push(String(await page.evaluate('document.activeElement.textContent')));
    }
    assert.ok(!reached.includes('Allow') && reached.includes('Deny'), reached.join());
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/callback\?/);
    assert.equal(new URL(page.url()).searchParams.get('error'), 'access_denied');
  });
});

async function openViews(t: TestContext, browser: Browser): Promise<BrowserContext[]> {
  return Promise.all(
    VIEWS.map(async ([, options]) => {
      const context = await browser.newContext({ ...options, bypassCSP: true });
      t.after(() => context.close());
      await context.newPage();
      return context;
    }),
  );
}

async function checkViews(contexts: readonly BrowserContext[], open: (page: Page) => Promise<unknown>): Promise<void> {
  for (const [index, context] of contexts.entries()) {
    const [page] = context.pages();
    await open(page!);
    assert.deepEqual(await findFlaws(page!), [], VIEWS[index]?.[0]);
  }
}

async function signIn(page: Page, url: string, password: string): Promise<void> {
  await page.goto(`${url}/sign-in`);
  await fillSignIn(page, password);
}

async function fillSignIn(page: Page, password: string): Promise<void> {
  await page.getByLabel('Login').fill('ada');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

async function fillAccount({ store, world }: PageService, { id: userId }: User): Promise<{ clientId: string }> {
  const form = { name: 'Harbour CI', homepage: 'https://ci.example.org', description: 'Builds your repositories.' };
  const redirectUris = ['https://ci.example.org/callback'];
  const { application } = await createApplication(store, world, {
    form: { ...form, redirectUris, isPublic: false },
    actor: { userId },
  });
  const token = { userId, name: 'Backup', scopes: ['all_user', 'all_hook'], expiresAtMs: undefined } as const;
  await createPersonalToken(store, world, token);
  const { clientId } = application;
  await store.writeAll([saveConsentStep(userId, clientId, { scope: 'all_user all_hook', nowMs: world.nowMs() })]);
  return { clientId };
}

/** The whole area, with a client that answers on a loopback port. */
async function startOAuth(t: TestContext) {
  const undo = new AsyncDisposableStack();
  t.after(() => undo.disposeAsync());
  const client = createServer((_, response) => response.end('<!doctype html><title>Client</title>Arrived'));
  await new Promise<void>((resolve) => void client.listen(0, '127.0.0.1', resolve));
  undo.defer(() => void client.close());
  const callback = `http://127.0.0.1:${(client.address() as AddressInfo).port}/callback`;
  const store = undo.use(await openTestStore(await createStorePlace('sqlite')));
  const server = undo.use(await startAuthorizationServer(store));
  const ada = await addUser(server, 'ada');
  const { clientId } = await registerApplication(server, { name: 'Harbour CI', redirectUris: [callback] }, ada.id);
  const native = { name: 'Native', isPublic: true, redirectUris: ['com.example.app:/callback'] };
  const { clientId: nativeId } = await registerApplication(server, native, ada.id);
  const common = {
    response_type: 'code',
    scope: 'all_user all_hook',
    state: 'a state',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
  };
  const urlFor = (client_id: string, redirect_uri: string) => () =>
    `${server.url}/oauth/authorize?${new URLSearchParams({ ...common, client_id, redirect_uri }).toString()}`;
  return {
    url: server.url,
    authorizeUrl: urlFor(clientId, callback),
    nativeUrl: urlFor(nativeId, 'com.example.app:/callback'),
  };
}

async function readText(page: Page, selector = 'main'): Promise<string> {
  // biome-ignore lint/performance/useDomNodeTextContent: what a person sees, not what is hidden
  return page.innerText(selector);
}
