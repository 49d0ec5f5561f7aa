/** The pages of the audit log, and its exports. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addUser, openAs, servePages } from '../../../test/support/pages/page-service.ts';
import { formatsOf } from '../../language/formats.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { MAX_READ } from '../administration/audit-operations.ts';

const PEOPLE = '/admin/users';

test('the audit log is filtered by account, actor, kind and time; the filter stays, and is exported', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  await addUser(service, 'ada');
  const client = await openAs(service, 'root');
  for (let count = 0; count < 30; count += 1)
    for (const change of ['disable', 'enable']) {
      const path = `${PEOPLE}/ada/${change}`;
      assert.equal((await client.submit(path, path, {})).status, 303);
    }
  const items = (body: string) => body.split('<li class="item">').length - 1;
  const first = await client.get('/admin/activity?user=ada&by=root');
  const [, next = ''] = /href="([^"]+before=[^"]+)"/.exec(first.body) ?? [];
  assert.match(next, /^\/admin\/activity\?user=ada&amp;by=root&amp;before=/);
  const second = await client.get(next.replaceAll('&amp;', '&'));
  assert.deepEqual([items(first.body), items(second.body)], [50, 10]);
  assert.match(second.body, /name="user"[^>]* value="ada"/);
  assert.match(first.body, /ada · by root/);
  const { world } = service;
  const later = new Date(world.nowMs() + 60_000).toISOString().slice(0, 16);
  for (const [query, count] of [
    ['user=ada&kind=user_disabled', 30],
    ['kind=sign_in', 1],
    [`since=${later}`, 0],
    [`until=${later}&kind=user_enabled`, 30],
  ] as const)
    assert.equal(items((await client.get(`/admin/activity?${query}`)).body), count, query);
  assert.equal((await client.get(`/admin/activity?since=${later}`)).status, 200);
  for (const query of ['user=unknown', 'kind=nothing', 'since=yesterday', 'hook=first'])
    assert.equal((await client.get(`/admin/activity?${query}`)).status, 422, query);
  for (const [repository, hook] of [
    ['ada/doors', 1],
    ['ada/doors', 2],
    ['ada/windows', 3],
  ] as const) {
    const event = { kind: 'hook_changed', details: { repository, hook } } as const;
    await service.store.writeAll([auditStatement(event, world.nowMs())]);
  }
  for (const [query, count] of [
    ['repository=ADA/doors', 2],
    ['repository=ada/doors&hook=2', 1],
    ['hook=3', 1],
    ['repository=ada/doors&hook=3', 0],
  ] as const)
    assert.equal(items((await client.get(`/admin/activity?${query}`)).body), count, query);
  const csv = await client.get('/admin/activity/export?user=ada&kind=user_disabled');
  assert.equal(csv.body.trimEnd().split('\r\n').length, 31);
  const jsonl = await client.get('/admin/activity/export?kind=sign_in&format=jsonl');
  const [row] = jsonl.body
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { kind: string; user: string });
  assert.deepEqual([row?.kind, row?.user], ['sign_in', 'root']);
});

test('an export of the audit log with a filter that cannot be leads to the page, which names the mistake', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const client = await openAs(service, 'root');
  for (const filter of ['kind=nonsense', 'user=unknown-person', 'since=never']) {
    const answer = await client.get(`/admin/activity/export?${filter}`);
    const zone = filter.startsWith('since') ? '&zone=UTC' : '';
    assert.deepEqual([answer.status, answer.location], [303, `/admin/activity?${filter}${zone}`]);
    assert.equal((await client.get(answer.location ?? '')).status, 422);
  }
});

test('the audit log reads times in the zone that its labels name, on every page of it and in its export', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const client = await openAs(service, 'root');
  const berlin = formatsOf({ language: 'en', timeZone: 'Europe/Berlin' });
  const since = berlin.minute(service.world.nowMs() - 600_000).replace(' ', 'T');
  client.jar.set('trivet_time_zone', 'Europe/Berlin');
  assert.match((await client.get('/admin/activity')).body, /name="zone" value="Europe\/Berlin"/);
  client.jar.set('trivet_time_zone', 'America/New_York');
  const query = new URLSearchParams({ kind: 'sign_in', since, zone: 'Europe/Berlin' }).toString();
  const { body } = await client.get(`/admin/activity?${query}`);
  assert.match(body, /Since \(Europe\/Berlin\)/);
  assert.match(body, /<li class="item">[\s\S]*GMT\+[12]</);
  const [, path = ''] = /href="(\/admin\/activity\/export[^"]*format=csv)"/.exec(body) ?? [];
  const { body: csv } = await client.get(path.replaceAll('&amp;', '&'));
  assert.equal(csv.trimEnd().split('\r\n').length, 2);
});

test('a search that stops before it found a page of events says that older ones were not searched, and goes on from there', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const client = await openAs(service, 'root');
  const newerMs = service.world.nowMs() + 1000;
  const events = Array.from({ length: MAX_READ }, (_, at) => auditStatement({ kind: 'hook_changed' }, newerMs + at));
  for (let at = 0; at < events.length; at += 500) await service.store.writeAll(events.slice(at, at + 500));
  const cut = (await client.get('/admin/activity?kind=sign_in')).body;
  assert.match(cut, /No event matches among the 10,000 that were searched\. Older ones were not searched yet\./);
  const [, next = '', label] = /<a class="button plain" href="([^"]+before=[^"]+)">([^<]+)</.exec(cut) ?? [];
  assert.equal(label, 'Search older ones');
  const found = (await client.get(next.replaceAll('&amp;', '&'))).body;
  assert.equal(found.split('<li class="item">').length - 1, 1);
  assert.doesNotMatch(found, /before=/);
  assert.match((await client.get('/admin/activity?kind=user_disabled&user=root')).body, />No event matches\.</);
});

test('a repository with the longest path is found by its full name', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const client = await openAs(service, 'root');
  const repository = `ada/${'d'.repeat(100)}`;
  const event = { kind: 'hook_changed', details: { repository, hook: 1 } } as const;
  await service.store.writeAll([auditStatement(event, service.world.nowMs())]);
  const { body } = await client.get(`/admin/activity?repository=${repository}&hook=1`);
  assert.equal(body.split('<li class="item">').length - 1, 1);
  assert.ok(body.includes(`value="${repository}"`));
  assert.equal((await client.get(`/admin/activity?user=${'x'.repeat(101)}`)).status, 422);
});

test('a filter that cannot be is marked at its field', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const client = await openAs(service, 'root');
  for (const name of ['kind', 'since', 'hook']) {
    const { body } = await client.get(`/admin/activity?${name}=nonsense`);
    assert.match(body, new RegExp(`<(?:input|select) id="field-${name}"[^>]* aria-invalid="true" autofocus`));
    assert.equal(body.match(/ autofocus/g)?.length, 1, name);
  }
});
