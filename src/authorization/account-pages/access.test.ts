import assert from 'node:assert/strict';
import { test } from 'node:test';
import { giveConsent } from '../../../test/support/authorization/give-consent.ts';
import { type FormClient, readHidden } from '../../../test/support/network/form-client.ts';
import { addUser, openAs, PASSWORD, type PageService, servePages } from '../../../test/support/pages/page-service.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { listSessions } from '../accounts/session-store.ts';
import { findUserByLogin } from '../accounts/user-store.ts';
import { createApplication } from '../applications/application.ts';
import { listSecrets } from '../applications/application-secret-store.ts';
import { listApplications } from '../applications/application-store.ts';
import { listAuthorizedApplications } from '../oauth/protocol/consent-store.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';
import { listPersonalTokens } from '../tokens/personal-token-store.ts';

async function tokenOf(client: FormClient): Promise<{ csrf_token: string }> {
  return { csrf_token: readHidden((await client.get('/account')).body, '/account').csrf_token ?? '' };
}

async function makeApplication({ store, world }: PageService, userId: string) {
  const form = { name: 'Harbour CI', homepage: '', description: '', isPublic: false };
  const redirectUris = ['https://ci.example.org/callback'];
  return (await createApplication(store, world, { form: { ...form, redirectUris }, actor: { userId } })).application;
}

test('a person cannot see or change an application, a token or a session of another person', async (t) => {
  const service = await servePages(t);
  const { store, world } = service;
  const ada = await addUser(service, 'ada');
  await addUser(service, 'eve');
  const { clientId } = await makeApplication(service, ada.id);
  const { token } = await createPersonalToken(store, world, {
    userId: ada.id,
    name: 'Backup',
    scopes: ['all_user'],
    expiresAtMs: undefined,
  });
  await giveConsent(store, { userId: ada.id, clientId, scopes: ['all_user'] });
  await openAs(service, 'ada');
  const [session] = await listSessions(store, ada.id, world.nowMs());
  const eve = await openAs(service, 'eve');
  const csrf = await tokenOf(eve);

  const path = `/account/applications/${clientId}`;
  assert.equal((await eve.get(path)).status, 404);
  for (const action of ['', '/secrets', '/secrets/delete'])
    assert.equal(
      (await eve.readRefusal(eve.post(path + action, { ...csrf, name: 'x', confirm: 'Harbour CI', slot: '1' }))).status,
      404,
    );
  // As for something that was deleted already: they redirect to the person's own list.
  assert.match(
    (await eve.post(`${path}/delete`, { ...csrf, confirm: 'Harbour CI' })).location ?? '',
    /^\/account\/app/,
  );
  const ofToken = await eve.post('/account/tokens/delete', { ...csrf, token_id: token.tokenId });
  assert.equal(ofToken.location, '/account/tokens?done=deleted');
  await eve.post('/account/sessions/end', { ...csrf, session_id: session!.id });
  await eve.post('/account/authorizations/revoke', { ...csrf, client_id: clientId });

  assert.equal((await listApplications(store, ada.id))[0]?.name, 'Harbour CI');
  assert.equal((await listSecrets(store, clientId)).length, 1);
  assert.equal((await listPersonalTokens(store, ada.id)).length, 1);
  assert.equal((await listSessions(store, ada.id, world.nowMs())).length, 1);
  assert.equal((await listAuthorizedApplications(store, ada.id, world.nowMs())).length, 1);
});

test('the pages of administrators are not there for others, their forms neither', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  await addUser(service, 'root', true);
  const client = await openAs(service, 'ada');
  for (const path of ['/admin/users', '/admin/activity']) assert.equal((await client.get(path)).status, 404, path);
  const csrf = await tokenOf(client);
  const given = { login: 'new', name: 'New', email: '', password: PASSWORD };
  assert.equal((await client.readRefusal(client.post('/admin/users', { ...csrf, ...given }))).status, 404);
  assert.equal((await client.readRefusal(client.post('/admin/users/ada/disable', csrf))).status, 404);
  assert.equal(await findUserByLogin(service.store, 'new'), undefined);
});

test('an administrator makes an account and disables it, but never the own one', async (t) => {
  const service = await servePages(t);
  const root = await addUser(service, 'root', true);
  const client = await openAs(service, 'root');
  const given = { login: 'grace', name: 'Grace', email: 'grace@example.org', password: PASSWORD };
  const weak = await client.readRefusal(client.submit('/admin/users', '/admin/users', { ...given, password: 'grace' }));
  assert.deepEqual([weak.status, weak.body.includes('must be 10 to 256 characters')], [422, true]);
  assert.equal((await client.submit('/admin/users', '/admin/users', given)).status, 303);
  const grace = await openAs(service, 'grace');
  const user = (await findUserByLogin(service.store, 'grace'))!;
  const csrf = await tokenOf(client);
  assert.equal((await client.post('/admin/users/grace/disable', csrf)).status, 303);
  assert.notEqual((await findUserByLogin(service.store, 'grace'))?.disabledAtMs, null);
  assert.equal((await grace.get('/account')).status, 303, 'the session has ended');
  assert.equal((await client.post('/admin/users/grace/enable', csrf)).status, 303);
  assert.equal((await findUserByLogin(service.store, 'grace'))?.disabledAtMs, null);
  assert.equal(
    (await client.readRefusal(client.post('/admin/users/root/disable', csrf))).status,
    404,
    'the own account',
  );
  const taken = await client.readRefusal(client.submit('/admin/users', '/admin/users', { ...given, login: 'ROOT' }));
  assert.deepEqual([taken.status, taken.body.includes('is taken')], [422, true]);
  const kinds = (await listEvents(service.store, { userId: user.id, limit: 9 })).map(({ kind, actorId }) => [
    kind,
    actorId,
  ]);
  for (const kind of ['user_created', 'user_disabled', 'user_enabled'])
    assert.ok(
      kinds.some(([seen, actor]) => seen === kind && actor === root.id),
      kind,
    );
});

test('whatever a person writes is shown as text', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const attack = '"><script>alert(1)</script>';
  assert.equal((await client.submit('/account', '/account', { name: attack, email: '' })).status, 303);
  const form = { name: attack, homepage: '', description: attack, redirect_uri: 'https://a.example/', kind: 'public' };
  const made = await client.submit('/account/applications/new', '/account/applications', form);
  assert.match(made.location ?? '', /^\/account\/applications\/app_\w+\?done=created$/);
  await client.submit('/account/tokens', '/account/tokens', { name: attack, days: '7', scope: 'all_user' });
  for (const path of ['/account', '/account/applications', '/account/tokens', '/account/activity']) {
    const { body } = await client.get(path);
    assert.ok(!body.includes('<script>alert'), path);
    if (path !== '/account/activity') assert.ok(body.includes('&lt;script&gt;alert(1)'), path);
  }
});

test('a form that makes a secret answers by redirect; the page shows it once, to that session and in that place alone', async (t) => {
  const service = await servePages(t);
  const ada = await addUser(service, 'ada');
  const { clientId } = await makeApplication(service, ada.id);
  const [client, other] = [await openAs(service, 'ada'), await openAs(service, 'ada')];
  const application = `/account/applications/${clientId}`;
  const web = {
    name: 'Builder',
    homepage: '',
    description: '',
    redirect_uri: 'https://b.example/',
    kind: 'confidential',
  };
  const forms: [page: string, action: string, fields: Record<string, string>][] = [
    ['/account/applications/new', '/account/applications', web],
    [application, `${application}/secrets`, {}],
    ['/account/tokens', '/account/tokens', { name: 'ci', days: '7', scope: 'all_user' }],
  ];
  for (const [page, action, fields] of forms) {
    const answer = await client.submit(page, action, fields);
    assert.deepEqual([answer.status, answer.body], [303, ''], action);
    const location = answer.location ?? '';
    const elsewhere = location.replace(
      /^[^?]*/,
      location.startsWith('/account/tokens') ? application : '/account/tokens',
    );
    for (const foreign of [await other.get(location), await client.get(elsewhere)]) {
      assert.equal(foreign.status, 200);
      assert.doesNotMatch(foreign.body, /tvt_[sp]_\w/);
    }
    assert.equal((await client.head(location)).status, 405, 'HEAD takes no secret');
    const shown = await client.get(location);
    assert.match(shown.body, /tvt_[sp]_\w{49}/, action);
    assert.match(shown.headers.get('cache-control') ?? '', /no-store/);
    const again = await client.get(location);
    assert.doesNotMatch(again.body, /tvt_[sp]_\w/);
    assert.match(again.body, /was shown before/);
  }
});

test('a second secret is added and the first deleted; the last one, a third and one that was replaced are refused', async (t) => {
  const service = await servePages(t);
  const ada = await addUser(service, 'ada');
  const { clientId } = await makeApplication(service, ada.id);
  const client = await openAs(service, 'ada');
  const path = `/account/applications/${clientId}`;
  const csrf = await tokenOf(client);
  const [{ slot, createdAtMs } = { slot: 0, createdAtMs: 0 }] = await listSecrets(service.store, clientId);
  const only = { ...csrf, slot: String(slot), created_at: String(createdAtMs) };
  const last = await client.readRefusal(client.post(`${path}/secrets/delete`, only));
  assert.match(last.body, /it is the last one, add another first/);
  const added = await client.post(`${path}/secrets`, csrf);
  assert.match((await client.get(added.location ?? '')).body, /id="new-secret" data-copy>tvt_/);
  assert.doesNotMatch((await client.get(path)).body, /new-secret/);
  assert.equal((await client.readRefusal(client.post(`${path}/secrets`, csrf))).status, 422);
  const first = readHidden((await client.get(path)).body, `${path}/secrets/delete`);
  for (const _click of ['first', 'second'])
    assert.equal((await client.post(`${path}/secrets/delete`, first)).location, `${path}?done=secret_removed`);
  assert.equal((await listSecrets(service.store, clientId)).length, 1);

  service.world.moveMs(1000);
  await client.post(`${path}/secrets`, csrf);
  const refused = await client.readRefusal(client.post(`${path}/secrets/delete`, first));
  assert.match(refused.body, /another one has taken its place meanwhile/);
  assert.equal((await listSecrets(service.store, clientId)).length, 2);
});

test('a page that was opened before an upgrade, and names no time of a secret, deletes none and says why', async (t) => {
  const service = await servePages(t);
  const ada = await addUser(service, 'ada');
  const { clientId } = await makeApplication(service, ada.id);
  const client = await openAs(service, 'ada');
  const path = `/account/applications/${clientId}`;
  const csrf = await tokenOf(client);
  await client.post(`${path}/secrets`, csrf);
  const send = () => client.readRefusal(client.post(`${path}/secrets/delete`, { ...csrf, slot: '1' }));
  const refused = await send();
  assert.equal(refused.status, 422);
  assert.match(refused.body, /No secret was deleted: the page was opened before an update of this service/);
  client.jar.set('trivet_language', 'zh-CN');
  assert.match((await send()).body, /未删除任何密钥：该页面是在服务升级之前打开的/);
  assert.equal((await listSecrets(service.store, clientId)).length, 2);
});

test('the activity goes on page by page to the first event', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const csrf = await tokenOf(client);
  for (let count = 0; count < 60; count += 1)
    await client.post('/account', { ...csrf, name: `Ada ${count}`, email: '' });
  const first = await client.get('/account/activity');
  const more = /href="(\/account\/activity\?before=[^"]+)"/.exec(first.body)?.[1] ?? '';
  const second = await client.get(more);
  const countOf = (body: string) => body.split('<li class="item">').length - 1;
  assert.deepEqual([countOf(first.body), countOf(second.body)], [50, 11]);
  assert.match(second.body, /Signed in/);
  assert.equal((await client.get('/account/activity?before=nonsense')).status, 200);
});

test('activity names an application, and the page of an application has the addresses that its programs need', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const given = { name: 'Builder', redirect_uri: 'https://builder.example/callback', kind: 'confidential' };
  const { location } = await client.submit('/account/applications/new', '/account/applications', given);
  const path = new URL(location ?? '', service.url).pathname;
  const page = await client.get(path);
  for (const end of ['/oauth/authorize', '/oauth/token', '/.well-known/openid-configuration'])
    assert.ok(page.body.includes(`<code>${service.url}${end}</code>`), end);
  assert.ok((await client.get('/account/activity')).body.includes(`Builder (${path.split('/').at(-1)})`));
});
