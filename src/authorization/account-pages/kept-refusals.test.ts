/** The store keeps the pages of refused forms until they are shown. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { addUser, openAs, type PageServiceOptions, servePages } from '../../../test/support/pages/page-service.ts';
import { type Store, statement } from '../../database/store.ts';

const LIST = '/account/applications';
const countKeptSql = statement<{ rows: number; bytes: number }>(
  'test-count-kept',
  'SELECT COUNT(*) AS rows, COALESCE(MAX(LENGTH(content)), 0) AS bytes FROM tickets',
);

async function openForms(t: TestContext, options?: PageServiceOptions) {
  const service = await servePages(t, options);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const csrf_token = /name="csrf_token" value="([^"]+)"/.exec((await client.get('/account')).body)?.[1] ?? '';
  const send = (fields: Readonly<Record<string, string>>, by = client) =>
    by.post(LIST, { csrf_token, kind: 'confidential', redirect_uri: 'not an address', ...fields });
  const readKept = async () => (await service.store.read(countKeptSql))[0];
  return { service, client, csrf_token, send, readKept };
}

test('a session has one page of a refused form: the next one takes its place', async (t) => {
  const { service, client, send, readKept } = await openForms(t);
  const first = await send({ name: 'First' });
  const second = await send({ name: 'Second' });
  assert.equal((await readKept())?.rows, 1);
  const late = await client.get(first.location ?? '');
  assert.equal(late.location, `${LIST}/new`, 'the page that was replaced is the form without what was refused');
  const other = await openAs(service, 'ada');
  assert.equal((await other.get(second.location ?? '')).location, `${LIST}/new`, 'another session sees nothing of it');
  assert.match((await client.readRefusal(second)).body, /name="name" type="text" value="Second"/);
  assert.equal((await client.get(second.location ?? '')).location, `${LIST}/new`, 'it is shown once');
  assert.equal((await readKept())?.rows, 0);
});

test('refused forms that are sent at once leave one page, which one of its two readers sees', async (t) => {
  const { service, client, send, readKept } = await openForms(t);
  const again = createFormClient(service.url, new Map(client.jar));
  const sent = await Promise.all(
    Array.from({ length: 20 }, (_, index) => send({ name: `CI ${index}` }, index % 2 ? client : again)),
  );
  assert.equal((await readKept())?.rows, 1);
  const shown = await Promise.all(
    sent.flatMap(({ location }) => [client.get(location ?? ''), again.get(location ?? '')]),
  );
  assert.equal(shown.filter(({ status }) => status === 422).length, 1);
});

test('a page that takes the place of another one while that is opened stays until it is opened itself', async (t) => {
  const meanwhile: (() => Promise<unknown>)[] = [];
  const wrapStore = (store: Store): Store => {
    const read: Store['read'] = async (query, parameters) => {
      const rows = await store.read(query, parameters);
      if (query.name === 'read-one-time-token') await meanwhile.pop()?.();
      return rows;
    };
    return { ...store, read };
  };
  const { client, send } = await openForms(t, { wrapStore });
  const first = await send({ name: 'First' });
  const sent: ReturnType<typeof send>[] = [];
  meanwhile.push(() => sent[sent.push(send({ name: 'Second' })) - 1]!);
  assert.equal((await client.get(first.location ?? '')).location, `${LIST}/new`);
  assert.match((await client.readRefusal(sent[0]!)).body, /name="name" type="text" value="Second"/);
});

test('a long form has at most as many characters as the rules accept, so that no huge page of it is kept', async (t) => {
  const { client, send, readKept } = await openForms(t);
  const long = await client.readRefusal(send({ name: 'CI', description: '"'.repeat(45_000) }));
  assert.match(long.body, /“Description” must be at most 1000 characters/);
  assert.ok(long.body.includes('&quot;'.repeat(45_000)), 'what was typed is there');
  await send({ name: 'CI', description: '"'.repeat(45_000) });
  const bytes = (await readKept())?.bytes ?? 0;
  assert.ok(bytes > 270_000 && bytes < 300_000, `${bytes} bytes`);
  const huge = () => client.readRefusal(send({ name: 'CI', description: '"'.repeat(50_000) }));
  const refused = await huge();
  assert.equal(refused.status, 413);
  assert.match(refused.body, /Cannot read the form: it must have at most 49152 characters/);
  client.jar.set('trivet_language', 'zh-CN');
  assert.match((await huge()).body, /表单内容最多 49152 个字符/);
});

test('only the forms of applications, tokens and webhooks may be long', async (t) => {
  const { client, csrf_token } = await openForms(t);
  const statusOf = async (path: string) =>
    (await client.readRefusal(client.post(path, { csrf_token, name: 'x'.repeat(20_000) }))).status;
  assert.equal(await statusOf('/account'), 413);
  assert.equal(await statusOf('/account/security/passkeys'), 413);
  assert.equal(await statusOf('/account/tokens'), 422);
});
