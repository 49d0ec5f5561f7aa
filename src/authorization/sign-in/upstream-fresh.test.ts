/** A sign-in at the provider within the last half hour, and one of before. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createFormClient, type FormClient } from '../../../test/support/network/form-client.ts';
import { type PageService, servePages } from '../../../test/support/pages/page-service.ts';
import { type SilentProvider, startSilentProvider } from '../../../test/support/pages/silent-provider.ts';
import { passProvider, startWithProvider } from '../../../test/support/pages/upstream-provider.ts';

const SECURITY = '/account/security';
const HALF_HOUR_MS = 30 * 60_000;
const DAY_MS = 86_400_000;

/** Where a change of the second step leads. */
async function beginChange(client: FormClient): Promise<string> {
  return (await client.submit(SECURITY, `${SECURITY}/totp`, {})).location ?? '';
}

/** The link to the provider on a sign-in page. */
async function readUpstreamPath(client: FormClient, page: string): Promise<string> {
  return /href="(\/sign-in\/upstream[^"]*)"/.exec((await client.get(page)).body)?.[1]?.replaceAll('&amp;', '&') ?? '';
}

test('a provider asks its person to sign in again, where a page here asks for it', async (t) => {
  const service = await startWithProvider(t, 'open');
  const client = createFormClient(service.url);
  const atProvider = new Map<string, string>();
  const visit = async (path: string) => {
    const { location } = await client.get(path);
    const { origin } = new URL(location!);
    const asked = await createFormClient(origin, atProvider).get(location!.slice(origin.length));
    const back = await passProvider(location!, 'grace', atProvider);
    return { asks: !asked.location!.startsWith(service.url), answer: await client.get(back.slice(service.url.length)) };
  };
  assert.equal((await visit('/sign-in/upstream')).asks, true, 'the first time');
  assert.equal((await visit('/sign-in/upstream')).asks, false, 'it knows its person');
  service.world.moveMs(HALF_HOUR_MS);
  const path = await readUpstreamPath(client, await beginChange(client));
  // The provider has the real clock.
  service.world.moveMs(-HALF_HOUR_MS);
  const { asks, answer } = await visit(path);
  assert.deepEqual([asks, answer.location], [true, SECURITY]);
  assert.equal(await beginChange(client), `${SECURITY}/totp`);
});

async function startSilent(t: TestContext): Promise<{ service: PageService; provider: SilentProvider }> {
  const provider = await startSilentProvider(t);
  return { service: await servePages(t, { upstream: provider.config }), provider };
}

async function visitSilent({ url }: PageService, client: FormClient, path = '/sign-in/upstream') {
  const { location } = await client.get(path);
  const back = (await fetch(location!, { redirect: 'manual' })).headers.get('location') ?? '';
  return client.get(back.slice(url.length));
}

test('a session has the time at which its person signed in at the provider', async (t) => {
  const { service, provider } = await startSilent(t);
  const client = createFormClient(service.url);
  provider.authTimeMs = service.world.nowMs() - HALF_HOUR_MS;
  await visitSilent(service, client);
  assert.match(await beginChange(client), /^\/sign-in\?.*again=yes/);
  provider.authTimeMs = service.world.nowMs() - 30 * DAY_MS;
  await visitSilent(service, client);
  assert.equal((await client.get('/account')).status, 200, 'it lasts, also where the provider ignores max_age');
});

for (const [language, sentence] of [
  ['en', /Company let you in without asking you to sign in again\./],
  ['zh-CN', /Company 没有要求您重新登录。/],
] as const)
  test(`a provider that does not ask its person again opens no new session (${language})`, async (t) => {
    const { service, provider } = await startSilent(t);
    const client = createFormClient(service.url, new Map(), { 'accept-language': language });
    provider.authTimeMs = service.world.nowMs() - HALF_HOUR_MS;
    await visitSilent(service, client);
    const session = client.jar.get('trivet_session');
    const refused = await visitSilent(service, client, await readUpstreamPath(client, await beginChange(client)));
    assert.match(refused.location ?? '', /^\/sign-in\?return_to=%2Faccount%2Fsecurity&again=yes&done=/);
    assert.match((await client.get(refused.location!)).body, sentence);
    assert.equal(client.jar.get('trivet_session'), session);
  });

test('a provider that never says when its person signed in is believed to have asked now', async (t) => {
  const { service } = await startSilent(t);
  const client = createFormClient(service.url);
  await visitSilent(service, client);
  service.world.moveMs(HALF_HOUR_MS);
  await visitSilent(service, client, await readUpstreamPath(client, await beginChange(client)));
  assert.equal(await beginChange(client), `${SECURITY}/totp`);
});

for (const [asked, sent] of [
  ['max_age=60', '60'],
  ['max_age=0', '0'],
  ['max_age=999999999', '1123200'],
  ['max_age=x', '1123200'],
  ['state=s', '1123200'],
] as const)
  test(`the provider is asked for a sign-in as recent as the application accepts (${asked})`, async (t) => {
    const { service } = await startSilent(t);
    const returnTo = `/oauth/authorize?client_id=a&${asked}`;
    const page = `/sign-in?${new URLSearchParams({ return_to: returnTo }).toString()}`;
    const client = createFormClient(service.url);
    const { location } = await client.get(await readUpstreamPath(client, page));
    const { searchParams } = new URL(location ?? '');
    assert.deepEqual([searchParams.get('max_age'), searchParams.get('prompt')], [sent, null]);
  });
