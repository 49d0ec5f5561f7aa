/** Everything on a live page that can change is in a part that the script replaces. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { findReasonToSkipPages } from '../../test/support/pages/browser.ts';
import { signIn, useBrowser } from '../../test/support/pages/browser-pages.ts';
import { createHook, pressButton, startHookPages } from '../../test/support/pages/hook-pages.ts';
import { enqueueTestDelivery } from '../../test/support/webhooks/deliveries-store.ts';

/** More deliveries than one page of the log shows. */
const DELIVERIES = 27;

describe('a live page', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('offers the older deliveries once there are some, and none is on neither page', async (t) => {
    const { service, client, receiver } = await startHookPages(t);
    const path = await createHook(client, receiver.url);
    const page = await browser.openPage(t);
    await signIn(page, service.url);
    await page.goto(`${service.url}${path}/deliveries`);
    await page.getByText('Nothing was sent yet').waitFor();
    const hookId = Number(path.split('/').at(-1));
    const ids: number[] = [];
    for (let count = 0; count < DELIVERIES; count += 1)
      ids.push(await enqueueTestDelivery(service.store, { hookId, url: receiver.url }));
    const newest = page.locator(`.log a[href$="/${ids.at(-1)}"]`);
    await newest.waitFor();
    const first = await listShown(page);
    await page.getByRole('link', { name: 'Older' }).click();
    await page.waitForURL(/[?&]before=/);
    assert.deepEqual([...first, ...(await listShown(page))], ids.toReversed());
  });

  test('shows nothing outside its parts that changes with the webhook', async (t) => {
    let status = 200;
    const { service, client, receiver } = await startHookPages(t, (_, response) => response.writeHead(status).end());
    const page = await browser.openPage(t);
    await signIn(page, service.url);
    const before = await readOutside(page, `${service.url}/`);
    const path = await createHook(client, receiver.url);
    const paths = [path, `${path}/deliveries`];
    const working = await Promise.all(paths.map((one) => readOutside(page, service.url + one)));
    await page.goto(service.url + path);
    await page.locator('[data-live-mark]:not([hidden])').waitFor();

    status = 410;
    await pressButton(client, path, 'test');
    await page.getByRole('button', { name: 'Enable' }).waitFor();
    assert.equal(await page.getByText('Disable', { exact: true }).count(), 0);
    assert.equal(await readOutside(page, `${service.url}/`), before);
    assert.deepEqual(await Promise.all(paths.map((one) => readOutside(page, service.url + one))), working);
  });
});

async function listShown(page: Page): Promise<number[]> {
  const links = await page.locator('.log a').evaluateAll((all) => all.map((link) => String(link.getAttribute('href'))));
  return links.map((link) => Number(/\/(\d+)(?:\?|$)/.exec(link)?.[1]));
}

/** Returns the page as it is sent, without the content of its parts and the colours of its buttons. */
async function readOutside(page: Page, url: string): Promise<string> {
  return String(
    await page.evaluate(`fetch(${JSON.stringify(url)}).then((answer) => answer.text()).then((text) => {
      const main = new DOMParser().parseFromString(text, 'text/html').querySelector('main');
      for (const part of main.querySelectorAll("[data-part]")) part.replaceChildren();
      for (const button of main.querySelectorAll('button')) button.removeAttribute('class');
      return main.innerHTML;
    })`),
  );
}
