import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { startProxy } from '../../test/support/network/away-proxy.ts';
import type { FormClient } from '../../test/support/network/form-client.ts';
import { type Answer, startReceiver } from '../../test/support/network/receiver.ts';
import { findReasonToSkipPages } from '../../test/support/pages/browser.ts';
import { signIn, useBrowser } from '../../test/support/pages/browser-pages.ts';
import { type ConsoleService, readCsrf, startConsoleService } from '../../test/support/pages/console-service.ts';
import { listSessions, SESSION_IDLE_MS } from '../authorization/accounts/session-store.ts';
import { findUserByLogin } from '../authorization/accounts/user-store.ts';
import { statement } from '../database/store.ts';

const FORM = { encryption_type: '1', password: 'k3y', profile: 'gitcode', push_events: '1' };

async function start(
  t: TestContext,
  answer?: Answer,
): Promise<{ service: ConsoleService; client: FormClient; hook: string }> {
  const receiver = await startReceiver(answer);
  t.after(() => receiver[Symbol.asyncDispose]());
  const service = await startConsoleService();
  t.after(() => service[Symbol.asyncDispose]());
  await service.addUser('ada');
  const client = await service.openAs('ada');
  await client.submit('/webhooks/new', '/webhooks/new', { owner: 'ada', name: 'doors', description: '' });
  const made = await client.submit('/webhooks/ada/doors/new', '/webhooks/ada/doors', { ...FORM, url: receiver.url });
  return { service, client, hook: (made.location ?? '').replace('?done=created', '') };
}

const setSeenSql = statement('test-see-session', 'UPDATE sessions SET last_seen_at_ms = $2 WHERE id = $1');

const EVENTS = { accept: 'text/event-stream' };

function formatCookies({ jar }: FormClient): string {
  return [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
}

/** Yields the names and data of the events of a page as they arrive. */
async function follow({ url }: ConsoleService, client: FormClient, path: string) {
  const headers = { cookie: formatCookies(client), ...EVENTS };
  const response = await fetch(url + path, { headers, redirect: 'manual' });
  return { response, events: readEvents(response) };
}

async function* readEvents({ body }: Response): AsyncGenerator<{ readonly name: string; readonly data: string }> {
  let text = '';
  for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
    // A CR ends a line too, alone or before LF.
    text += chunk.replaceAll(/\r\n?/g, '\n');
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const lines = text.slice(0, end).split('\n');
      text = text.slice(end + 2);
      const name = lines.find((line) => line.startsWith('event: '))?.slice(7);
      const data = lines.flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : [])).join('\n');
      if (name !== undefined) yield { name, data };
    }
  }
}

test('a page is sent again when it has changed, and ends with the session', async (t) => {
  const { service, client, hook } = await start(t);
  const { response, events } = await follow(service, client, `${hook}/deliveries`);
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  assert.match((await events.next()).value?.data ?? '', /Nothing was sent yet/);
  await client.submit(hook, `${hook}/test`, {});
  assert.match((await events.next()).value?.data ?? '', /succeeded/);
  await client.post('/sign-out', await readCsrf(client));
  assert.equal((await events.next()).value?.name, 'end');
  assert.equal((await events.next()).done, true);
});

test('a page of what is deleted ends, and is not asked for again', async (t) => {
  const { service, client, hook } = await start(t);
  const { events } = await follow(service, client, hook);
  assert.equal((await events.next()).value?.name, 'page');
  await client.submit(hook, `${hook}/delete`, { confirm: 'yes' });
  assert.equal((await events.next()).value?.name, 'end');
  const again = await follow(service, client, hook);
  assert.equal((await again.events.next()).value?.name, 'end');
});

test('a page that is left open does not keep its session alive', async (t) => {
  const { service, client } = await start(t);
  const { id = '' } = (await findUserByLogin(service.store, 'ada')) ?? {};
  const sessions = async () => await listSessions(service.store, id, Date.now());
  const [session] = await sessions();
  const seenAtMs = Date.now() - SESSION_IDLE_MS + 60_000;
  await service.store.write(setSeenSql, [session!.id, seenAtMs]);
  const { events } = await follow(service, client, '/');
  assert.equal((await events.next()).value?.name, 'page');
  assert.deepEqual(
    (await sessions()).map(({ lastSeenAtMs }) => lastSeenAtMs),
    [seenAtMs],
  );
  await service.store.write(setSeenSql, [session!.id, seenAtMs - 61_000]);
  assert.equal((await events.next()).value?.name, 'end');
});

test('what a receiver answers begins no event of its own', async (t) => {
  const { service, client, hook } = await start(t, (_, response) => void response.end('one\r\revent: end\rdata: two'));
  const sent = await client.submit(hook, `${hook}/test`, {});
  const { events } = await follow(service, client, (sent.location ?? '').replace(/\?.*/, ''));
  const { value } = await events.next();
  assert.match(value?.data ?? '', /one\n\nevent: end\ndata: two/);
  await events.return(undefined);
});

test('a person has four such pages: the oldest ends for a fifth', async (t) => {
  const { service, client } = await start(t);
  const streams = [];
  for (let count = 0; count < 5; count += 1) {
    const { events } = await follow(service, client, '/');
    assert.equal((await events.next()).value?.name, 'page');
    streams.push(events);
    const head = await fetch(service.url, { method: 'HEAD', headers: { cookie: formatCookies(client), ...EVENTS } });
    assert.equal(head.status, 405, 'HEAD opens none');
  }
  assert.equal((await streams[0]!.next()).value?.name, 'end');
  for (const events of streams.slice(1)) await events.return(undefined);
});

test('such pages end with the service, and are for signed-in people', async (t) => {
  const { service, client } = await start(t);
  const { events } = await follow(service, client, '/');
  await events.next();
  const stranger = await follow(service, { ...client, jar: new Map() }, '/');
  assert.deepEqual((await stranger.events.next()).value, { name: 'end', data: '' });
  assert.equal((await stranger.events.next()).done, true);
  const ended = events.next();
  await service[Symbol.asyncDispose]();
  assert.equal((await ended).done, true, 'without the event that tells the browser not to ask again');
});

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  const browser = useBrowser();

  test('the log follows what happens, a body can be copied, and a password can be read', async (t) => {
    const { service, client, hook } = await start(t);
    const page = await browser.openPage(t, { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.goto(`${service.url}/sign-in`);
    const password = page.getByLabel('Password', { exact: true });
    await password.fill('secret');
    await page.getByRole('button', { name: 'Show' }).click();
    assert.equal(await password.getAttribute('type'), 'text');
    await signIn(page, service.url);
    await page.goto(`${service.url}${hook}/deliveries`);
    await client.submit(hook, `${hook}/test`, {});
    await page.getByText('succeeded').last().waitFor();
    await page.locator('.log a').first().click();
    await page.getByRole('button', { name: 'Copy' }).first().click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const copied = String(await page.evaluate('navigator.clipboard.readText()'));
    assert.equal(JSON.parse(copied).ref, 'refs/heads/main');
  });

  test('a page is followed again after the service was away', async (t) => {
    const { service, client, hook } = await start(t);
    const proxy = await startProxy(service.url);
    t.after(() => proxy[Symbol.asyncDispose]());
    const page = await browser.openPage(t);
    await signIn(page, service.url);
    await page.goto(`${proxy.url}${hook}/deliveries`);
    const mark = page.locator('[data-live-mark]');
    await mark.waitFor();
    const refused = page.waitForResponse((response) => response.status() === 503);
    proxy.goAway();
    await mark.waitFor({ state: 'hidden' });
    await refused;
    proxy.comeBack();
    await client.submit(hook, `${hook}/test`, {});
    await page.getByText('succeeded').last().waitFor();
    await mark.waitFor();
  });
});
