/** The language of the pages: what decides it, the switch, and that it stays when a form is refused. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findReasonToSkipPages } from '../../../test/support/pages/browser.ts';
import { readText, signIn, useBrowser } from '../../../test/support/pages/browser-pages.ts';
import { addUser, openAs, type PageService, startPageService } from '../../../test/support/pages/page-service.ts';
import { setLanguageStatement } from './language-store.ts';

const CHINESE = 'zh-CN,zh;q=0.9,en;q=0.8';

async function readLanguage({ url }: PageService, headers: Readonly<Record<string, string>>): Promise<string> {
  const response = await fetch(`${url}/sign-in`, { headers });
  return /<html lang="([^"]*)"/.exec(await response.text())?.[1] ?? '';
}

test('the language is that of the cookie, then that of Accept-Language, then English', async () => {
  await using service = await startPageService();
  assert.equal(await readLanguage(service, {}), 'en');
  assert.equal(await readLanguage(service, { 'Accept-Language': CHINESE }), 'zh-CN');
  assert.equal(await readLanguage(service, { 'Accept-Language': CHINESE, Cookie: 'trivet_language=en' }), 'en');
  assert.equal(await readLanguage(service, { Cookie: 'trivet_language=zh-CN' }), 'zh-CN');
  assert.equal(await readLanguage(service, { 'Accept-Language': CHINESE, Cookie: 'trivet_language=fr' }), 'zh-CN');
});

test('a page says what its language depends on, and a page that does not exist has it too', async () => {
  await using service = await startPageService();
  const response = await fetch(`${service.url}/nothing`, { headers: { 'Accept-Language': CHINESE } });
  assert.equal(response.status, 404);
  assert.match(response.headers.get('vary') ?? '', /Accept-Language, Cookie/);
  const body = await response.text();
  assert.match(body, /<html lang="zh-CN">/);
  assert.match(body, /页面不存在/);
});

const referrers: readonly (readonly [referrer: string | undefined, leadsTo: string])[] = [
  ['/sign-in?login_hint=ada', '/sign-in?login_hint=ada'],
  ['https://evil.example/account', '/account'],
  ['https://evil.example//evil.example/x', '/'],
  ['https://evil.example/\\evil.example', '/'],
  ['other://evil.example/\\evil.example', '/'],
  ['javascript:alert(1)', '/'],
  ['no address', '/'],
  [undefined, '/'],
];

test('the switch leads back to a path of this service, whatever the referrer says', async () => {
  await using service = await startPageService();
  for (const [referrer, leadsTo] of referrers) {
    const headers =
      referrer === undefined ? {} : { Referer: referrer.startsWith('/') ? service.url + referrer : referrer };
    const body = new URLSearchParams({ language: 'zh-CN' });
    const response = await fetch(`${service.url}/language`, { method: 'POST', redirect: 'manual', headers, body });
    assert.deepEqual([response.status, response.headers.get('location')], [303, leadsTo], referrer);
    assert.match(
      response.headers.get('set-cookie') ?? '',
      /^trivet_language=zh-CN; Max-Age=31536000; Path=\/; HttpOnly; SameSite=Lax/,
    );
  }
});

test('behind a proxy that ends TLS, the cookie of the switch is Secure like all others', async () => {
  await using service = await startPageService({ baseUrl: 'https://id.example.org' });
  const headers = { Origin: 'https://id.example.org' };
  const body = new URLSearchParams({ language: 'zh-CN' });
  const response = await fetch(`${service.url}/language`, { method: 'POST', redirect: 'manual', headers, body });
  assert.match(response.headers.get('set-cookie') ?? '', /^trivet_language=zh-CN; .*; Secure/);
});

test('the switch sets no cookie for a language that does not exist', async () => {
  await using service = await startPageService();
  const body = new URLSearchParams({ language: 'xx' });
  const response = await fetch(`${service.url}/language`, { method: 'POST', redirect: 'manual', body });
  assert.deepEqual([response.status, response.headers.get('set-cookie')], [303, null]);
});

test('a refused form is in the language of the person, with what a rule says', async () => {
  await using service = await startPageService();
  const { id } = await addUser(service, 'ada');
  await service.store.writeAll([setLanguageStatement(id, 'zh-CN')]);
  const client = await openAs(service, 'ada');
  const refused = await client.readRefusal(
    client.submit('/account/tokens', '/account/tokens', { name: 'CI', days: '7' }),
  );
  assert.equal(refused.status, 422);
  assert.match(refused.body, /<html lang="zh-CN">[\s\S]*请更正以下问题[\s\S]*至少选择一个权限范围/);
  assert.doesNotMatch(refused.body, /Cannot create the token/);
  const pages = [refused, await client.get('/account/security'), await client.get('/account/activity')];
  for (const { body } of pages)
    assert.doesNotMatch(body, /\p{Script=Han}(<[^>]*>)*[.,:;](<[^>]*>)*\s/u, 'a stop of another script');
});

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('the switch works without script before the sign-in, and the choice stays with the person', async (t) => {
    await using service = await startPageService({ hostname: 'localhost' });
    await addUser(service, 'ada');
    const page = await browser.openPage(t, { javaScriptEnabled: false });
    await page.goto(`${service.url}/sign-in?login_hint=ada`);
    await page.getByRole('button', { name: '简体中文' }).click();
    assert.equal(new URL(page.url()).search, '?login_hint=ada');
    assert.match(await readText(page), /登录/);
    await signIn(page, service.url, 'wrong password');
    assert.match(await readText(page), /请更正以下问题[\s\S]*用户名或密码错误/);
    await signIn(page, service.url);
    await page.goto(`${service.url}/account`);
    assert.match(await readText(page), /个人资料/);

    // Without a sign-in, the choice is stored only in the browser.
    const other = await browser.openPage(t, { javaScriptEnabled: false });
    await signIn(other, service.url);
    await other.goto(`${service.url}/account`);
    assert.match(await readText(other), /Your profile|Profile/);
    await other.getByRole('button', { name: '简体中文' }).click();
    assert.match(await readText(other), /个人资料/);

    const third = await browser.openPage(t, { javaScriptEnabled: false });
    await signIn(third, service.url);
    await third.goto(`${service.url}/account`);
    assert.match(await readText(third), /个人资料/, 'stored with the person');
  });

  test('with a script, times are in the time zone of the browser', async (t) => {
    await using service = await startPageService({ hostname: 'localhost' });
    await addUser(service, 'ada');
    const page = await browser.openPage(t, { timezoneId: 'Asia/Shanghai' });
    await signIn(page, service.url);
    await page.goto(`${service.url}/account/sessions`);
    assert.match(await readText(page), /last seen \d{4}-\d\d-\d\d \d\d:\d\d GMT\+8/);
  });

  test('without a script, times are in UTC, which is written beside them', async (t) => {
    await using service = await startPageService({ hostname: 'localhost' });
    await addUser(service, 'ada');
    const page = await browser.openPage(t, { javaScriptEnabled: false, timezoneId: 'Asia/Shanghai' });
    await signIn(page, service.url);
    await page.goto(`${service.url}/account/sessions`);
    assert.match(await readText(page), /last seen \d{4}-\d\d-\d\d \d\d:\d\d UTC/);
  });
});
