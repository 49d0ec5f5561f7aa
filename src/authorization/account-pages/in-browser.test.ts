/** What only a browser shows of the account pages: their width on a phone, and where the focus stays. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findReasonToSkipPages } from '../../../test/support/pages/browser.ts';
import { signIn, useBrowser } from '../../../test/support/pages/browser-pages.ts';
import { addUser, servePages } from '../../../test/support/pages/page-service.ts';
import { statement } from '../../database/store.ts';

const setTextsSql = statement('test-set-texts', 'UPDATE users SET email = $2, name = $3 WHERE id = $1');

const IS_WIDE = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('no page of an account scrolls sideways on a phone for a long address or name', async (t) => {
    const service = await servePages(t);
    const ada = await addUser(service, 'ada', true);
    const { id } = await addUser(service, 'g'.repeat(64));
    for (const one of [ada.id, id])
      await service.store.write(setTextsSql, [one, `${one.slice(0, 8)}${'a'.repeat(40)}@example.org`, 'N'.repeat(60)]);
    const page = await browser.openPage(t, { viewport: { width: 320, height: 640 } });
    await signIn(page, service.url);
    const person = `/admin/users/${'g'.repeat(64)}`;
    for (const path of ['/account', '/account/security', '/admin/users', person, `${person}/disable`]) {
      const answer = await page.goto(service.url + path);
      assert.equal(answer?.status(), 200, path);
      assert.equal(await page.evaluate(IS_WIDE), false, path);
    }
  });

  test('a password field keeps the focus and what was typed when the script comes late', async (t) => {
    const service = await servePages(t);
    await addUser(service, 'ada');
    const page = await browser.openPage(t);
    const { promise: asked, resolve: letGo } = Promise.withResolvers<void>();
    await page.route(/-page\.js/, async (route) => {
      await asked;
      await route.continue();
    });
    await page.goto(`${service.url}/sign-in?login_hint=ada`, { waitUntil: 'commit' });
    const password = page.locator('input[name=password]');
    await password.focus();
    await password.pressSequentially('correct');
    letGo();
    await page.getByRole('button', { name: 'Show' }).waitFor();
    await page.keyboard.type(' horse');
    assert.equal(await password.inputValue(), 'correct horse');
    const [field, button] = await Promise.all([
      password.boundingBox(),
      page.getByRole('button', { name: 'Show' }).boundingBox(),
    ]);
    assert.ok(button!.x >= field!.x + field!.width, 'the button stands beside the field');
    assert.ok(Math.abs(button!.y - field!.y) < 2 && Math.abs(button!.height - field!.height) < 2);
  });
});
