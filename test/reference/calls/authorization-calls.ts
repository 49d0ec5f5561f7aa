/** Every operation of OAuth, and of the signed-in person on tokens and applications. */
import { read } from '../../support/api/api-client.ts';
import type { Calls } from './calls.ts';

const CALLBACK = 'https://client.example/callback';
const asForm = { headers: { 'content-type': 'application/x-www-form-urlencoded' } } as const;

export async function callOAuth({ api, browser }: Calls): Promise<void> {
  const form = { name: 'Journey', redirect_uris: [CALLBACK] };
  const made = await read(api.POST('/api/v5/user/applications', { body: form }));
  const client = { client_id: made.client_id, client_secret: made.client_secret ?? '' };
  const query = {
    client_id: made.client_id,
    redirect_uri: CALLBACK,
    response_type: 'code',
    scope: 'openid all_user',
  } as const;
  await api.GET('/oauth/authorize', { params: { query } });
  const page = `/oauth/authorize?${new URLSearchParams(query).toString()}`;
  const fields = { decision: 'allow', narrow: '' };
  const { location } = await browser.submit(page, '/oauth/authorize', { ...fields, scope: 'all_user' });
  const code = new URL(location ?? '').searchParams.get('code') ?? '';
  const exchange = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, ...client };
  const tokens = await read(api.POST('/oauth/token', { ...asForm, body: exchange }));
  const token = tokens.access_token;
  await api.GET('/oauth/userinfo', { headers: { authorization: `Bearer ${token}` } });
  await api.POST('/oauth/introspect', { ...asForm, body: { token, ...client } });
  await api.POST('/oauth/revoke', { ...asForm, body: { token, ...client } });
  await api.POST('/oauth/device', { ...asForm, body: { client_id: 'trivet-cli', scope: 'all_user' } });
}

export async function callUser({ api }: Calls): Promise<void> {
  await api.GET('/api/v5/user', {});
  const token = await read(api.POST('/api/v5/user/access_tokens', { body: { name: 'ci', scopes: ['all_user'] } }));
  await api.GET('/api/v5/user/access_tokens', {});
  await api.DELETE('/api/v5/user/access_tokens/{id}', { params: { path: { id: token.id } } });
  const form = { name: 'Harbour', redirect_uris: [CALLBACK] };
  const made = await read(api.POST('/api/v5/user/applications', { body: form }));
  const path = { client_id: made.client_id };
  await api.GET('/api/v5/user/applications', {});
  await api.GET('/api/v5/user/applications/{client_id}', { params: { path } });
  await api.PATCH('/api/v5/user/applications/{client_id}', { params: { path }, body: { description: 'CI' } });
  await api.POST('/api/v5/user/applications/{client_id}/secrets', { params: { path } });
  await api.DELETE('/api/v5/user/applications/{client_id}/secrets/{slot}', { params: { path: { ...path, slot: 1 } } });
  await api.DELETE('/api/v5/user/applications/{client_id}', { params: { path } });
}
