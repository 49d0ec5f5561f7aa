/** A form that is sent after its session has ended: the person learns that nothing was saved. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createFormClient, type FormClient } from '../../test/support/network/form-client.ts';
import { findReasonToSkipPages } from '../../test/support/pages/browser.ts';
import { fillSignIn, readText, signIn, useBrowser } from '../../test/support/pages/browser-pages.ts';
import { readCsrf } from '../../test/support/pages/console-service.ts';
import { REPOSITORY, startHookPages } from '../../test/support/pages/hook-pages.ts';
import { PASSWORD } from '../../test/support/pages/page-service.ts';

const FORM = `${REPOSITORY}/new`;
const LOST = /Your session had ended, so what you sent was not saved\. Sign in, and send it again\./;

/** Signs out in another browser with the same cookies. */
async function endSession(client: FormClient, url: string): Promise<Record<string, string>> {
  const csrf = await readCsrf(client);
  const other = createFormClient(url, new Map(client.jar));
  assert.equal((await other.post('/sign-out', csrf)).status, 303);
  return csrf;
}

test('a form that is sent after the end of the session leads to the sign-in, which says that nothing was saved and leads back to the page', async (t) => {
  const { service, client } = await startHookPages(t);
  const csrf = await endSession(client, service.url);
  const send = (headers: Readonly<Record<string, string>>) => client.post(REPOSITORY, { ...csrf, url: 'x' }, headers);
  const sent = await send({ referer: `${service.url}${FORM}?a=1` });
  assert.equal(sent.location, `/sign-in?return_to=${encodeURIComponent(`${FORM}?a=1`)}&done=session_ended`);
  assert.match((await client.get(sent.location)).body, LOST);
  client.jar.set('trivet_language', 'zh-CN');
  assert.match((await client.get(sent.location)).body, /您的会话已结束，因此您提交的内容没有保存/);
  assert.equal((await send({})).location, '/sign-in?done=session_ended', 'without a referrer it leads home');
  const foreign = await send({ origin: 'https://evil.example', referer: 'https://evil.example/account/tokens' });
  assert.equal(foreign.location, '/sign-in', 'another site does not choose what the page says');
  const fields = { login: 'ada', password: PASSWORD };
  assert.equal((await client.submit(sent.location, '/sign-in', fields)).location, `${FORM}?a=1`);
});

test('the page that the person comes back to does not show the outcome of an earlier form', async (t) => {
  const { service, client } = await startHookPages(t);
  const csrf = await endSession(client, service.url);
  for (const [from, back] of [
    ['/account?done=saved', '/account'],
    ['/webhooks/ada/doors/1?replayed=7', '/webhooks/ada/doors/1'],
    ['/account/tokens?once=abc', '/account/tokens'],
    ['/admin/users?q=ada&done=created&refused=abc', '/admin/users?q=ada'],
  ] as const) {
    const sent = await client.post('/account', csrf, { referer: service.url + from });
    assert.equal(sent.location, `/sign-in?return_to=${encodeURIComponent(back)}&done=session_ended`, from);
  }
});

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('the person comes back to the form', async (t) => {
    const { service } = await startHookPages(t);
    const page = await browser.openPage(t);
    await signIn(page, service.url);
    await page.goto(service.url + FORM);
    await page.fill('input[name=url]', 'https://ci.example.com/hook');
    await page.context().clearCookies();
    await page.click('form[action="/webhooks/ada/doors"] button:not([type])');
    await page.waitForURL(/\/sign-in\?/);
    assert.match(await readText(page), LOST);
    await fillSignIn(page);
    await page.waitForURL(service.url + FORM);
  });
});
