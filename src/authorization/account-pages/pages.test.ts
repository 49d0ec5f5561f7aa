import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { TOTP } from 'otpauth';
import type { CDPSession } from 'playwright-core';
import { findReasonToSkipPages } from '../../../test/support/pages/browser.ts';
import { fillSignIn, readText, signIn, useBrowser } from '../../../test/support/pages/browser-pages.ts';
import { addUser, PASSWORD, startPageService } from '../../../test/support/pages/page-service.ts';
import { styleSheet } from '../../pages/assets.ts';
import { listEvents } from '../accounts/audit-store.ts';

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
  const browser = useBrowser();

  test('an authenticator app is set up, asked for at the next sign-in, and replaced by a recovery code', async (t) => {
    await using service = await startPageService();
    await addUser(service, 'ada');
    const page = await browser.openPage(t, { viewport: { width: 320, height: 640 }, bypassCSP: true });
    await signIn(page, service.url);
    await page.goto(`${service.url}/account/security`);
    await page.click('text=Set up an authenticator app');
    const seed = (await readText(page, '#totp-key')).replaceAll(' ', '');
    const digits = () => new TOTP({ secret: seed }).generate({ timestamp: service.world.nowMs() });
    await page.getByLabel('six digits').fill(digits());
    await page.getByRole('button', { name: 'Turn on' }).click();
    const codes = await page.locator('.codes code').allInnerTexts();
    assert.equal(codes.length, 10);
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Download')]);
    assert.equal(download.suggestedFilename(), 'trivet-recovery-codes.txt');
    const saved = readFileSync(await download.path(), 'utf8')
      .trim()
      .split(/\s+/);
    assert.deepEqual(saved, codes, 'the file has each code on a line of its own');
    await page.click('text=I have kept them');
    assert.match(await readText(page), /10 recovery codes left/);

    await page.click('text=Sign out');
    await fillSignIn(page);
    assert.equal(await page.title(), 'Second step · Trivet');
    service.world.moveMs(30_000);
    await page.getByLabel('Code').fill(digits());
    await page.click('text=Confirm');
    assert.equal(await page.title(), 'Home · Trivet');
    await page.click('text=Sign out');
    await fillSignIn(page);
    await page.getByLabel('Code').fill(codes[3]!.toUpperCase().replaceAll('-', ' '));
    await page.click('text=Confirm');
    await page.setViewportSize({ width: 1440, height: 800 });
    await page.click('nav >> text=Activity');
    assert.match(await readText(page), /Recovery code used/);
  });

  test('everything but passkeys works without a script', async (t) => {
    await using service = await startPageService();
    await addUser(service, 'ada');
    const page = await browser.openPage(t, { javaScriptEnabled: false });
    await signIn(page, service.url);
    assert.equal(await page.title(), 'Home · Trivet');

    await page.click('nav >> text=OAuth applications');
    await page.click('text=New application');
    await page.getByLabel('Name', { exact: true }).fill('Harbour CI');
    await page.getByLabel('Redirect addresses').fill('https://ci.example.org/callback');
    await page.click('text=Create application');
    assert.match(await readText(page, '#new-secret'), /^tvt_/);
    await page.getByRole('button', { name: 'New secret' }).click();
    assert.equal(await page.locator('strong', { hasText: 'Ends in' }).count(), 2);
    await page.locator('summary', { hasText: 'Delete' }).first().click();
    await page.getByRole('button', { name: 'Yes, delete Ends in' }).first().click();
    assert.equal(await page.locator('strong', { hasText: 'Ends in' }).count(), 1);
    await page.getByLabel('Type Harbour CI to confirm').fill('Harbour CI');
    await page.click('text=Delete application');
    assert.match(await readText(page), /You have no applications yet/);

    await page.click('nav >> text=Personal access tokens');
    await page.getByLabel('Name', { exact: true }).fill('Backup');
    await page.getByLabel('all_repository').check();
    await page.click('text=Create token');
    assert.match(await readText(page, '#new-token'), /^tvt_p_/);
    await page.locator('summary', { hasText: 'Delete Backup' }).click();
    await page.getByRole('button', { name: 'Yes, delete Backup' }).click();
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
    const here = await browser.openPage(t);
    const there = await browser.openPage(t);
    await signIn(there, service.url, PASSWORD);
    await signIn(here, service.url, PASSWORD);
    await here.goto(`${service.url}/account/sessions`);
    assert.equal(await here.locator('.list > li').count(), 2);
    await here.locator('summary', { hasText: 'End Chrome' }).click();
    await here.getByRole('button', { name: /^Yes, end Chrome/ }).click();
    assert.equal(await here.locator('.list > li').count(), 1);
    await there.reload();
    assert.match(there.url(), /\/sign-in/);
  });

  test('an application is made once, however often its page is loaded again', async (t) => {
    await using service = await startPageService();
    await addUser(service, 'ada');
    const page = await browser.openPage(t);
    await signIn(page, service.url);
    await page.goto(`${service.url}/account/applications/new`);
    await page.locator('input[name=name]').fill('Builder CI');
    await page.locator('[name=redirect_uri]').fill('https://builder.example/callback');
    await page.getByRole('button', { name: 'Create application' }).click();
    assert.match(await readText(page, '#new-secret'), /^tvt_s_/);
    await page.reload();
    assert.equal(await page.locator('#new-secret').count(), 0);
    await page.goto(`${service.url}/account/applications`);
    assert.equal(await page.locator('.list > li').count(), 1);
  });

  test('a passkey that cannot be added or used says why: known already, a form that is too old, a second click', async (t) => {
    await using service = await startPageService({ hostname: 'localhost' });
    await addUser(service, 'ada');
    const page = await browser.openPage(t);
    const cdp = await page.context().newCDPSession(page);
    const authenticatorId = await addAuthenticator(cdp);
    await signIn(page, service.url);
    for (const name of ['Laptop', 'Laptop again']) {
      await page.goto(`${service.url}/account/security`);
      await page.getByLabel('Name of the new passkey').fill(name);
      await page.click('text=Add a passkey');
      if (name === 'Laptop') await page.waitForURL(/done=saved/);
    }
    await page.locator('[data-known]').waitFor();
    assert.match(await readText(page, '[data-known]'), /has a passkey of your account already/);
    assert.equal(await page.locator('[data-failure]').isVisible(), false);

    await page.click('text=Sign out');
    await page.context().clearCookies({ name: 'trivet_form' });
    await page.click('text=Sign in with a passkey');
    await page.waitForURL(/\/refused\?/);
    assert.match(await readText(page), /This form is too old/);

    await page.goto(`${service.url}/sign-in`);
    // The browser waits until a person is present.
    await cdp.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: false });
    let requests = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/passkey/options')) requests += 1;
    });
    const asked = page.waitForResponse(/passkey\/options/);
    await page.click('text=Sign in with a passkey');
    await asked;
    await page.click('text=Sign in with a passkey');
    assert.equal(await page.locator('[data-failure]').isVisible(), false);
    assert.equal(requests, 1);
  });

  test('a passkey is added, signs in without a password, and is removed', async (t) => {
    await using service = await startPageService({ hostname: 'localhost' });
    await addUser(service, 'ada');
    const page = await browser.openPage(t);
    const cdp = await page.context().newCDPSession(page);
    await addAuthenticator(cdp);
    await signIn(page, service.url);
    await page.goto(`${service.url}/account/security`);
    await page.getByLabel('Name of the new passkey').fill('Laptop');
    await page.click('text=Add a passkey');
    await page.waitForURL(/done=saved/);
    assert.match(await readText(page, '.list'), /Laptop[\s\S]*never used/);
    const [added] = (await listEvents(service.store, { limit: 9 })).filter(({ kind }) => kind === 'passkey_added');
    assert.match(added?.address ?? '', /127\.0\.0\.1|::1/);

    await page.click('text=Sign out');
    await page.click('text=Sign in with a passkey');
    await page.waitForURL(`${service.url}/`);
    await page.goto(`${service.url}/account/sessions`);
    assert.match(await readText(page, '.list'), /with passkey/);
    await page.goto(`${service.url}/account/security`);
    assert.match(await readText(page, '.list'), /last used/);
    await page.locator('summary', { hasText: 'Remove Laptop' }).click();
    await page.getByRole('button', { name: 'Yes, remove Laptop' }).click();
    await page.click('text=Sign out');
    await page.click('text=Sign in with a passkey');
    await page.waitForSelector('text=The passkey was not accepted');
  });
});

/** A platform authenticator whose person is always present and verified. */
async function addAuthenticator(cdp: CDPSession): Promise<string> {
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return authenticatorId;
}
