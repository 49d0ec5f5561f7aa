import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import {
  registerApplication,
  startAuthorizationServer,
} from '../../../test/support/authorization/authorization-server.ts';
import { findReasonToSkipPages } from '../../../test/support/pages/browser.ts';
import { fillSignIn, readText, signIn, useBrowser } from '../../../test/support/pages/browser-pages.ts';
import { findPageFlaws, findShownFlaws, speakTo } from '../../../test/support/pages/page-flaws.ts';
import { addUser, PASSWORD } from '../../../test/support/pages/page-service.ts';
import { createStorePlace, openTestStore } from '../../../test/support/store/engines.ts';

/** Names and texts that people entered. */
const CONTENT = ['ada', 'Harbour', 'CI', 'client', 'example'];
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('axe finds nothing on the consent and device pages, and for an unknown application', async (t) => {
    const oauth = await startOAuth(t);
    const page = await browser.openPage(t, { bypassCSP: true });
    await signIn(page, oauth.url);
    for (const url of [
      oauth.authorizeUrl(),
      `${oauth.url}/device`,
      `${oauth.url}/oauth/authorize?client_id=app_none`,
    ]) {
      await page.goto(url);
      assert.deepEqual(await findPageFlaws(page, CONTENT), [], url);
    }
  });

  for (const [language, allow, goOn] of [
    ['en', 'Allow', 'Continue now'],
    ['zh-CN', '允许', '立即前往'],
  ] as const)
    test(`a private scheme is reached by a page in ${language} with a link, since a form may not redirect there`, async (t) => {
      const oauth = await startOAuth(t);
      const page = await browser.openPage(t, { bypassCSP: true });
      await speakTo(page, language, oauth.url);
      await page.goto(oauth.nativeUrl());
      await fillSignIn(page);
      await page.getByRole('button', { name: allow, exact: true }).click();
      const link = await page.getByRole('link', { name: goOn }).getAttribute('href');
      assert.match(link ?? '', /^com\.example\.app:\/callback\?code=tvt_/);
      assert.deepEqual(await findShownFlaws(page, { language, content: [...CONTENT, 'com', 'app'] }), []);
    });

  test('a person signs in, sees who asks for what, allows, and arrives at the client; the browser stops nothing', async (t) => {
    const oauth = await startOAuth(t);
    const page = await browser.openPage(t);
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    await page.goto(oauth.authorizeUrl());
    await fillSignIn(page);
    const asked = await readText(page);
    for (const part of ['Allow Harbour CI?', 'by ada', 'ada', 'Webhooks', 'all_hook', '127.0.0.1', '15 days'])
      assert.ok(asked.includes(part), `the page says "${part}"`);
    await page.getByRole('button', { name: 'Allow', exact: true }).click();
    await page.waitForURL(/\/callback\?/);
    const answer = new URL(page.url()).searchParams;
    assert.match(answer.get('code') ?? '', /^tvt_/);
    assert.equal(answer.get('state'), 'a state');
    assert.equal(answer.get('iss'), oauth.url);

    await page.goto(`${oauth.url}/account`);
    await page.click('text=Sign out');
    await page.goto(oauth.authorizeUrl());
    await fillSignIn(page);
    await page.waitForURL(/\/callback\?/);
    assert.deepEqual(
      complaints.filter((text) => /Content Security Policy|violates/.test(text)),
      [],
    );
  });

  test('a decision that is sent after the end of the session is asked for again after the sign-in', async (t) => {
    const oauth = await startOAuth(t);
    const page = await browser.openPage(t);
    await page.goto(oauth.authorizeUrl());
    await fillSignIn(page);
    const allow = page.getByRole('button', { name: 'Allow', exact: true });
    await allow.waitFor();
    const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    const csrf_token = (await page.locator('input[name=csrf_token]').first().getAttribute('value')) ?? '';
    const body = new URLSearchParams({ csrf_token });
    const headers = { cookie, origin: oauth.url };
    await fetch(`${oauth.url}/sign-out`, { method: 'POST', headers, body, redirect: 'manual' });
    await allow.click();
    await page.waitForURL(/\/sign-in\?/);
    await fillSignIn(page);
    await allow.click();
    await page.waitForURL(/\/callback\?/);
  });

  for (const extra of [{ prompt: 'login' }, { prompt: 'select_account' }, { max_age: '0' }])
    test(`a client that sends ${JSON.stringify(extra)} gets a fresh sign-in, also after a wrong password`, async (t) => {
      const oauth = await startOAuth(t);
      const page = await browser.openPage(t);
      await signIn(page, oauth.url);
      await page.goto(`${oauth.authorizeUrl()}&${new URLSearchParams(extra).toString()}`);
      const links = page.locator('main a[href*="/oauth/authorize"]');
      assert.match(await readText(page), /You are signed in as ada\. To go on, sign in again, or as another person\./);
      assert.equal(await links.count(), 0, 'no link leads back to a request that asks again');
      await fillSignIn(page, 'a wrong password');
      assert.match(await readText(page), /Wrong login or password/);
      assert.equal(await links.count(), 0);
      await fillSignIn(page);
      await page.getByRole('button', { name: 'Allow', exact: true }).click();
      await page.waitForURL(/\/callback\?/);
      assert.match(new URL(page.url()).searchParams.get('code') ?? '', /^tvt_/);
    });

  for (const host of ['127.0.0.1', '[::1]'])
    test(`signing in, Allow and Deny lead through a callback on ${host} that redirects to another origin`, async (t) => {
      const oauth = await startOAuth(t, { host, redirectsOn: true });
      const page = await browser.openPage(t);
      await page.goto(oauth.authorizeUrl());
      await fillSignIn(page);
      await page.getByRole('button', { name: 'Deny', exact: true }).click();
      await page.waitForURL(`${oauth.appUrl}?*`);
      assert.equal(new URL(page.url()).searchParams.get('error'), 'access_denied');

      await page.goto(oauth.authorizeUrl());
      await page.getByRole('button', { name: 'Allow', exact: true }).click();
      await page.waitForURL(`${oauth.appUrl}?*`);
      assert.match(new URL(page.url()).searchParams.get('code') ?? '', /^tvt_/);

      await page.goto(`${oauth.url}/account`);
      await page.click('text=Sign out');
      await page.goto(oauth.authorizeUrl());
      await fillSignIn(page);
      await page.waitForURL(`${oauth.appUrl}?*`);
      assert.match(new URL(page.url()).searchParams.get('code') ?? '', /^tvt_/);
    });

  test('A15 a person denies by keyboard alone; deny comes first', async (t) => {
    const oauth = await startOAuth(t);
    const page = await browser.openPage(t);
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

interface ClientOptions {
  /** The URL of the client's callback. */
  readonly host?: string;
  /** The URL of the application, on another origin, to which the callback redirects. */
  readonly redirectsOn?: boolean;
}

/** The whole area, with a client that answers on a loopback port. */
async function startOAuth(t: TestContext, { host = '127.0.0.1', redirectsOn = false }: ClientOptions = {}) {
  const undo = new AsyncDisposableStack();
  t.after(() => undo.disposeAsync());
  const listen = async (address: string, listener: RequestListener) => {
    const server = createServer(listener);
    await new Promise<void>((resolve) => void server.listen(0, address.replace(/[[\]]/g, ''), resolve));
    undo.defer(() => void server.close());
    return `http://${address}:${(server.address() as AddressInfo).port}`;
  };
  const arrive: RequestListener = (_, response) => response.end('<!doctype html><title>Client</title>Arrived');
  const appUrl = `${(await listen('127.0.0.1', arrive)).replace('127.0.0.1', 'localhost')}/app`;
  const redirectOn: RequestListener = ({ url = '' }, response) =>
    response.writeHead(302, { location: appUrl + url.slice(url.indexOf('?')) }).end();
  const callback = `${await listen(host, redirectsOn ? redirectOn : arrive)}/callback`;
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
    appUrl,
    authorizeUrl: urlFor(clientId, callback),
    nativeUrl: urlFor(nativeId, 'com.example.app:/callback'),
  };
}
