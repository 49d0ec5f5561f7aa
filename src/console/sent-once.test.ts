/** A second click on a button: in a browser it sends nothing, and without a script it shows the result of the first. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { giveSecondStep } from '../../test/support/authorization/second-step.ts';
import { createFormClient } from '../../test/support/network/form-client.ts';
import { findReasonToSkipPages } from '../../test/support/pages/browser.ts';
import { signIn, useBrowser } from '../../test/support/pages/browser-pages.ts';
import { startConsoleService } from '../../test/support/pages/console-service.ts';
import { createHook, REPOSITORY, startHookPages, textOf } from '../../test/support/pages/hook-pages.ts';
import { PASSWORD } from '../../test/support/pages/page-service.ts';

test('what is deleted, disabled or enabled twice leads to the list, and not to a page that does not exist', async (t) => {
  const { service, client, receiver } = await startHookPages(t);
  const hook = await createHook(client, receiver.url);
  const made = await client.submit('/account/applications/new', '/account/applications', {
    name: 'CI',
    redirect_uri: 'https://ci.example.org/cb',
    kind: 'confidential',
  });
  const application = (made.location ?? '').replace(/\?.*/, '');
  await client.submit('/account/tokens', '/account/tokens', { name: 'a', scope: 'all_user', days: '7' });
  const tokenId = /name="token_id" value="([^"]+)"/.exec((await client.get('/account/tokens')).body)?.[1] ?? '';
  const [, csrf_token = ''] = /name="csrf_token" value="([^"]+)"/.exec((await client.get('/account')).body) ?? [];
  const forms: [path: string, fields: Readonly<Record<string, string>>, leadsTo: string][] = [
    ['/account/tokens/delete', { token_id: tokenId }, '/account/tokens?done=deleted'],
    [`${application}/delete`, { confirm: 'CI' }, '/account/applications?done=deleted'],
    [`${hook}/disable`, {}, `${hook}?done=disabled`],
    [`${hook}/delete`, { confirm: 'yes' }, `${REPOSITORY}?done=deleted`],
  ];
  for (const [path, fields, leadsTo] of forms)
    for (const click of ['first', 'second'])
      assert.equal((await client.post(path, { csrf_token, ...fields })).location, leadsTo, `${path}: ${click}`);

  await service.addUser('root', true);
  const root = await service.openAs('root');
  const change = async (name: string) => {
    const path = `/admin/users/ada/${name}`;
    const answer = await root.get(path);
    const [, token = ''] = /name="csrf_token" value="([^"]+)"/.exec(answer.body) ?? [];
    for (const click of ['first', 'second'])
      assert.equal((await root.post(path, { csrf_token: token })).location, `/admin/users/ada?done=${name}`, click);
  };
  for (const name of ['make-admin', 'unmake-admin', 'disable', 'enable']) await change(name);
});

/** Stops every form, and records whether the script of the page would have sent it. */
const KEEP_FORMS = `window.sent = [];
  addEventListener('submit', (event) => {
    window.sent.push(!event.defaultPrevented);
    event.preventDefault();
  });`;

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('a second click sends no form again until another page is shown', async (t) => {
    const { service, receiver } = await startHookPages(t);
    const page = await browser.openPage(t);
    await signIn(page, service.url);
    await page.goto(`${service.url}${REPOSITORY}/new`);
    await page.fill('input[name=url]', receiver.url);
    await page.evaluate(KEEP_FORMS);
    const button = page.locator('main form button:not([type])');
    await button.click();
    await button.click();
    await page.evaluate(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`);
    await button.click();
    await button.click();
    // The reader comes back from an application that the form has opened.
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
    await button.click();
    assert.deepEqual(await page.evaluate('window.sent'), [true, false, true, false, true]);
    // Another form does not wait for the answer to this one.
    await page.evaluate('window.sent.length = 0');
    await button.click();
    const signOut = page.locator('form[action="/sign-out"] button');
    await signOut.click();
    await signOut.click();
    assert.deepEqual(await page.evaluate('window.sent'), [false, true, false]);

    await page.goto(`${service.url}${REPOSITORY}/new`);
    await page.fill('input[name=url]', `${receiver.url}2`);
    await page.click('main form button:not([type])');
    await page.getByText('The webhook is created').waitFor();
  });

  test('a second click sends nothing where a live page has replaced the button meanwhile, and that of another row does', async (t) => {
    const { service, client } = await startHookPages(t);
    for (const name of ['first', 'second'])
      await client.submit('/account/tokens', '/account/tokens', { name, scope: 'all_user', days: '7' });
    const page = await browser.openPage(t);
    await signIn(page, service.url);
    await page.goto(`${service.url}/account/tokens`);
    await page.evaluate(KEEP_FORMS);
    const open = () => page.evaluate(`document.querySelectorAll('details').forEach((one) => { one.open = true; })`);
    const deletes = page.locator('form[action="/account/tokens/delete"] button');
    await open();
    await deletes.first().click();
    // As the script of the page replaces its parts.
    await page.evaluate(`for (const list of document.querySelectorAll('ul.list')) {
      const fresh = new DOMParser().parseFromString(list.innerHTML, 'text/html');
      list.replaceChildren(...fresh.body.childNodes);
    }`);
    await open();
    await deletes.first().click();
    await deletes.last().click();
    await deletes.last().click();
    assert.deepEqual(await page.evaluate('window.sent'), [true, false, true, false]);
  });
});

test('each page of the sign-in has the script that sends a form once', async (t) => {
  const service = await startConsoleService({ SMTP_HOST: '127.0.0.1', MAIL_FROM: 'trivet@example.org' });
  t.after(() => service[Symbol.asyncDispose]());
  await service.addUser('ada');
  const signedIn = await service.openAs('ada');
  await giveSecondStep(service.store, 'ada');
  const client = createFormClient(service.url);
  const { location } = await client.submit('/sign-in', '/sign-in', { login: 'ada', password: PASSWORD });
  assert.match(location ?? '', /second-step/);
  const pages = [
    client.get('/sign-in'),
    client.get(location ?? ''),
    client.get('/forgot-password'),
    signedIn.get('/device'),
  ];
  for (const answer of await Promise.all(pages)) {
    assert.match(answer.body, /<form method="post"/);
    assert.match(answer.body, /<script type="module" src="\/assets\/[\w-]+-page\.js">/, textOf(answer));
    assert.match(answer.headers.get('content-security-policy') ?? '', /script-src 'self'/);
  }
});
