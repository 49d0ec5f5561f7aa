/** Refused forms of people who are not signed in: the page of the redirect shows why, only to this browser, and no post repeats. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createFormClient, readHidden } from '../../../test/support/network/form-client.ts';
import { findReasonToSkipPages } from '../../../test/support/pages/browser.ts';
import { fillSignIn, readText, useBrowser } from '../../../test/support/pages/browser-pages.ts';
import {
  addUser,
  PASSWORD,
  servePages,
  startPageService,
  submitSignIn,
} from '../../../test/support/pages/page-service.ts';

const WRONG = /Wrong login or password/;

test('a refused sign-in keeps the login and the way back, and its address holds neither the password nor another host', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = createFormClient(service.url);
  const answer = await submitSignIn(client, 'ada', 'a wrong password', '/sign-in?return_to=%2Faccount%2Ftokens');
  assert.match(answer.location ?? '', /^\/sign-in\?return_to=%2Faccount%2Ftokens&refused=[\w-]+$/);
  assert.equal(answer.body, '');
  const page = await client.get(answer.location ?? '');
  assert.equal(page.status, 422);
  assert.match(page.body, WRONG);
  assert.match(page.body, /name="login"[^>]* value="ada"/);
  assert.match(page.body, /name="return_to" value="\/account\/tokens"/);
  const query = new URLSearchParams(answer.location?.split('?')[1]);
  const browser = readHidden(page.body, '/sign-in').csrf_token;
  const ciphertext = Buffer.from(query.get('refused') ?? '', 'base64url');
  const content = service.signIn.context.cipher.decrypt(ciphertext, `refused form:/sign-in:${browser}`).toString();
  assert.deepEqual(JSON.parse(content).values, { login: 'ada' });
  for (const text of [answer.location ?? '', page.body, content]) assert.ok(!text.includes('a wrong password'));
  const reloaded = await client.get(answer.location ?? '');
  assert.deepEqual([reloaded.status, reloaded.body], [page.status, page.body]);
  assert.equal((await submitSignIn(client, 'ada', PASSWORD, answer.location ?? '')).location, '/account/tokens');
});

test('a way back to another site does not survive a refusal', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  for (const path of ['//evil.example', '/\\evil.example', 'https://evil.example']) {
    const client = createFormClient(service.url);
    const page = `/sign-in?return_to=${encodeURIComponent(path)}`;
    const { location } = await submitSignIn(client, 'ada', 'wrong', page);
    assert.match(location ?? '', /^\/sign-in\?refused=[\w-]+$/, path);
  }
});

test('the longest way back fits into the address of a refused sign-in', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = createFormClient(service.url);
  const asked = await client.get(`/account/activity?before=${'a'.repeat(11_900)}`);
  assert.match(asked.location ?? '', /return_to=/);
  const page = await client.readRefusal(submitSignIn(client, '\u{1F600}'.repeat(32), 'wrong', asked.location ?? ''));
  assert.equal(page.status, 422);
  assert.match(page.body, WRONG);
});

test('what one browser was refused is not shown in another, on another page, later, or when it was changed', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const eve = createFormClient(service.url);
  const refused = await submitSignIn(eve, 'Call 555-0100 to sign in', 'wrong');
  const location = refused.location ?? '';
  assert.match((await eve.readRefusal(refused)).body, /Call 555-0100/);
  const assertNothingShown = async (client: typeof eve, path: string) => {
    const { status, body, headers } = await client.get(path);
    assert.deepEqual([status, headers.get('retry-after')], [200, null], path);
    assert.doesNotMatch(body, /Call 555-0100|role="alert" tabindex/, path);
  };
  const victim = createFormClient(service.url);
  await assertNothingShown(victim, location);
  await assertNothingShown(victim, location);
  await assertNothingShown(
    eve,
    location.replace(/(refused=.{30})./, (_, start: string) => `${start}!`),
  );
  await assertNothingShown(eve, `/sign-in?refused=${Buffer.from('{"message":"Call 555-0100"}').toString('base64url')}`);
  await assertNothingShown(eve, '/sign-in?mistake=Call%20555-0100&message=Call%20555-0100');
  eve.jar.set('trivet_step', 'made-up');
  await assertNothingShown(eve, location.replace('/sign-in', '/sign-in/second-step'));
  service.world.moveMs(10 * 60_000 + 1);
  await assertNothingShown(eve, location);
});

test('guesses behind a redirect count, and looking at a refusal does not', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = createFormClient(service.url);
  const first = await submitSignIn(client, 'ada', 'wrong');
  for (let look = 0; look < 20; look += 1) assert.equal((await client.get(first.location ?? '')).status, 422);
  for (let guess = 1; guess < 5; guess += 1)
    assert.equal((await client.readRefusal(submitSignIn(client, 'ada', 'wrong'))).status, 422);
  // Not even the right password is checked now.
  const waits = await client.readRefusal(submitSignIn(client, 'ada'));
  assert.deepEqual([waits.status, waits.headers.get('retry-after')], [429, '1']);
  assert.match(waits.body, /Too many attempts/);
});

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('a refused sign-in is posted once, however often its page is reloaded, and then signs in', async (t) => {
    await using service = await startPageService({ hostname: 'localhost' });
    await addUser(service, 'ada');
    const page = await browser.openPage(t);
    const posts: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST') posts.push(new URL(request.url()).pathname);
    });
    await page.goto(`${service.url}/sign-in?return_to=%2Faccount`);
    await fillSignIn(page, 'a wrong password');
    for (let look = 0; look < 3; look += 1) {
      assert.match(await readText(page), WRONG);
      assert.equal(await page.getByLabel('Login').inputValue(), 'ada');
      assert.equal(await page.locator('input[name=password]').inputValue(), '');
      const answer = await page.reload();
      assert.deepEqual([answer?.request().method(), answer?.status()], ['GET', 422]);
    }
    assert.deepEqual(posts, ['/sign-in']);
    await fillSignIn(page);
    await page.waitForURL(`${service.url}/account`);
    assert.deepEqual(posts, ['/sign-in', '/sign-in']);
  });
});
