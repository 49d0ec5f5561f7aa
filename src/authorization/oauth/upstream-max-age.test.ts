/** The greatest age of a sign-in that an application accepts, where people sign in at a provider. */
import assert from 'node:assert/strict';
import {
  registerApplication,
  startAuthorizationServer,
} from '../../../test/support/authorization/authorization-server.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { type SilentProvider, startSilentProvider } from '../../../test/support/pages/silent-provider.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';

const HOUR_MS = 3_600_000;

/** The provider asks its person to sign in again if the sign-in of before is older than the request accepts. */
async function passProvider(provider: SilentProvider, location: string, nowMs: number): Promise<string> {
  const maxAgeMs = Number(new URL(location).searchParams.get('max_age')) * 1000;
  if (nowMs - (provider.authTimeMs ?? 0) > maxAgeMs) provider.authTimeMs = nowMs;
  return (await fetch(location, { redirect: 'manual' })).headers.get('location') ?? '';
}

forEachEngine('max_age of an application leads through the sign-in page once', async (store, { t }) => {
  const provider = await startSilentProvider(t);
  const { issuer, clientId, clientSecret } = provider.config;
  const environment = {
    UPSTREAM_ISSUER: issuer,
    UPSTREAM_CLIENT_ID: clientId,
    UPSTREAM_CLIENT_SECRET: clientSecret ?? '',
    UPSTREAM_SIGN_UP: 'open',
  };
  await using server = await startAuthorizationServer(store, { environment });
  const application = await registerApplication(server);
  const client = createFormClient(server.url);
  provider.authTimeMs = server.world.nowMs() - 2 * HOUR_MS;
  const [redirectUri = ''] = application.application.redirectUris;
  const request = { client_id: application.clientId, redirect_uri: redirectUri, response_type: 'code', max_age: '60' };
  const asked = await client.get(`/oauth/authorize?${new URLSearchParams(request).toString()}`);
  const signIn = await client.get(asked.location ?? '');
  const link = /href="(\/sign-in\/upstream[^"]*)"/.exec(signIn.body)?.[1]?.replaceAll('&amp;', '&') ?? '';
  const { location } = await client.get(link);
  const back = await passProvider(provider, location ?? '', server.world.nowMs());
  const returned = await client.get(back.slice(server.url.length));
  const consent = await client.get(returned.location ?? '');
  assert.deepEqual([consent.status, consent.location], [200, null]);
  assert.match(consent.body, /name="decision" value="allow"/);
});
