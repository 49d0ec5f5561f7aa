/** The link of a new service, with which its first administrator is made. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFormClient, readHidden } from '../../../test/support/network/form-client.ts';
import { addUser, PASSWORD, servePages } from '../../../test/support/pages/page-service.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { createSetupLink } from './setup-routes.ts';

test('the sign-in page of a service without accounts says how the first one is made', async (t) => {
  const service = await servePages(t);
  const client = createFormClient(service.url);
  assert.match((await client.get('/sign-in')).body, /No account exists yet/);
  const link = new URL((await createSetupLink(service.signIn.context))!);
  const given = { login: 'ada', name: 'Ada', email: '', password: PASSWORD };
  await client.submit(`/setup${link.search}`, '/setup', given);
  assert.doesNotMatch((await createFormClient(service.url).get('/sign-in')).body, /No account exists yet/);
});

test('a refusal in Chinese ends with one full stop', async (t) => {
  const service = await servePages(t);
  const client = createFormClient(service.url, new Map(), { 'accept-language': 'zh-CN' });
  const { status, body } = await client.get('/setup?token=x');
  assert.equal(status, 403);
  assert.match(body, /请重启服务以获取新链接。<\/p>/);
});

test('the set-up link works once, while no administrator exists', async (t) => {
  const service = await servePages(t);
  const { search } = new URL((await createSetupLink(service.signIn.context))!);
  const second = new URL((await createSetupLink(service.signIn.context))!);
  const client = createFormClient(service.url);
  const given = { login: 'root', name: 'Root', email: 'root@example.org', password: PASSWORD };
  const weak = await client.readRefusal(client.submit(`/setup${search}`, '/setup', { ...given, password: 'short' }));
  assert.equal(weak.status, 422);
  assert.match(weak.body, /must be 10 to 256 characters/);
  for (const value of ['root', 'Root', 'root@example.org']) assert.ok(weak.body.includes(`value="${value}"`), value);
  assert.doesNotMatch(weak.body, /short/);
  const late = createFormClient(service.url);
  const opened = readHidden((await late.get(`/setup${second.search}`)).body, '/setup');
  assert.equal((await client.submit(`/setup${search}`, '/setup', given)).location, '/');
  assert.match((await client.get('/account')).body, /Administration/);
  const created = (await listEvents(service.store, { limit: 10 })).find(({ kind }) => kind === 'user_created');
  assert.deepEqual([created?.address, created?.details?.by], ['127.0.0.1', 'set-up link']);
  const worthless = await late.post('/setup', { ...opened, ...given, login: 'eve' });
  assert.deepEqual([worthless.status, worthless.location], [303, `/setup${second.search}`]);
  assert.equal((await late.get(worthless.location ?? '')).status, 403);
  assert.equal((await createFormClient(service.url).get(`/setup${second.search}`)).status, 403);
  assert.equal((await createFormClient(service.url).get('/setup?token=x')).status, 403);
  assert.equal(await createSetupLink(service.signIn.context), undefined);
});

test('the set-up link makes the administrator beside the accounts of others', async (t) => {
  const service = await servePages(t);
  const { search } = new URL((await createSetupLink(service.signIn.context))!);
  await addUser(service, 'early');
  assert.match(
    (await createSetupLink(service.signIn.context)) ?? '',
    /\/setup\?token=/,
    'another start prints one too',
  );
  const client = createFormClient(service.url);
  assert.match((await client.get('/sign-in')).body, /No administrator exists yet.*Forgot your password\?/s);
  const given = { login: 'root', name: 'Root', email: '', password: PASSWORD };
  const taken = await client.readRefusal(client.submit(`/setup${search}`, '/setup', { ...given, login: 'early' }));
  assert.deepEqual([taken.status, taken.body.includes('the login')], [422, true]);
  assert.equal((await client.submit(`/setup${search}`, '/setup', given)).location, '/');
  assert.match((await client.get('/account')).body, /Administration/);
  assert.doesNotMatch((await createFormClient(service.url).get('/sign-in')).body, /exists yet/);
  assert.equal(await createSetupLink(service.signIn.context), undefined);
});
