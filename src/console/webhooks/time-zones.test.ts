/** The time zone in which the pages of webhooks read a time: that of the page on which it was typed. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findReasonToSkipPages } from '../../../test/support/pages/browser.ts';
import { readText, signIn, useBrowser } from '../../../test/support/pages/browser-pages.ts';
import { createHook, pressButton, startHookPages, waitForText } from '../../../test/support/pages/hook-pages.ts';
import { enqueueTestDelivery } from '../../../test/support/webhooks/deliveries-store.ts';
import { formatsOf } from '../../language/formats.ts';

const COOKIE = 'trivet_time_zone';

/** Returns the local time of the zone ten minutes ago. */
function readClock(timeZone: string): string {
  return formatsOf({ language: 'en', timeZone })
    .minute(Date.now() - 600_000)
    .replace(' ', 'T');
}

test('a time is read in the zone that its label names, whatever zone the browser is in when it is sent', async (t) => {
  const { service, client, receiver } = await startHookPages(t, (_, response) => response.writeHead(410).end());
  const path = await createHook(client, receiver.url);
  await enqueueTestDelivery(service.store, { hookId: Number(path.split('/').at(-1)), url: receiver.url });
  await waitForText(client, path, /Disabled since/);
  const since = readClock('Europe/Berlin');

  client.jar.set(COOKIE, 'Europe/Berlin');
  const { body } = await client.get(path);
  assert.match(body, /Since \(Europe\/Berlin\)/);
  client.jar.set(COOKIE, 'America/New_York');
  const csrf_token = /name="csrf_token" value="([^"]+)"/.exec(body)?.[1] ?? '';
  const [, zone = ''] = /action="[^"]*\/replay"[\s\S]*?name="zone" value="([^"]+)"/.exec(body) ?? [];
  const replay = (fields: Readonly<Record<string, string>>) =>
    client.post(`${path}/replay`, { csrf_token, since, ...fields });
  const refused = await client.readRefusal(replay({ zone, since: `${since}Z1` }));
  assert.match(refused.body, /Since \(Europe\/Berlin\)[\s\S]*?name="since"[^>]* value="[^"]*Z1"/, 'both are kept');
  assert.equal((await replay({ zone: 'Mars/Base' })).location, `${path}?replayed=0`, 'an unknown zone is not used');
  assert.equal((await replay({ zone })).location, `${path}?replayed=1`);

  const log = `${path}/deliveries`;
  const query = (name: string) => `?${new URLSearchParams({ since, zone: name }).toString()}`;
  const found = (await client.get(log + query('Europe/Berlin'))).body;
  assert.match(found, /From \(Europe\/Berlin\)/);
  const [, row = ''] = /<ul class="list log">([\s\S]*?)<\/ul>/.exec(found) ?? [];
  assert.match(row, /GMT\+[12]</, 'the list has the zone of the filter');
  assert.match(row, /href="[^"]*zone=Europe%2FBerlin"/, 'the zone stays with the times');
  assert.match((await client.get(log + query('America/New_York'))).body, /No delivery matches/);
});

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('the first page of a browser follows the webhook in the zone of its labels', async (t) => {
    const { service, client, receiver } = await startHookPages(t);
    const path = await createHook(client, receiver.url);
    const page = await browser.openPage(t, { timezoneId: 'Asia/Shanghai' });
    await signIn(page, service.url);
    await page.context().clearCookies({ name: COOKIE });
    await page.goto(`${service.url}${path}/deliveries`);
    await page.locator('[data-live-mark]:not([hidden])').waitFor();
    await pressButton(client, path, 'test');
    const row = page.locator('.log time').first();
    await row.waitFor();
    assert.match(await readText(page), /From \(UTC\)/);
    assert.match(await row.innerText(), / UTC$/);
    await page.reload();
    assert.match(await row.innerText(), / GMT\+8$/);
    assert.match(await readText(page), /From \(Asia\/Shanghai\)/);
  });
});
