/** Forms that were opened before another change and are saved after it. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type FormClient, readHidden } from '../../../test/support/network/form-client.ts';
import { addUser, openAs, servePages } from '../../../test/support/pages/page-service.ts';
import { findUserById } from '../accounts/user-store.ts';
import { createApplication } from '../applications/application.ts';
import { findApplication } from '../applications/application-store.ts';

const KEPT = 'https://client.example/cb';
const REMOVED = 'https://compromised.example/cb';
/** As a browser sends the lines of a text area. */
const BOTH = `${KEPT}\r\n${REMOVED}`;

async function openApplication(t: TestContext) {
  const service = await servePages(t);
  const { store, world } = service;
  const actor = { userId: (await addUser(service, 'ada')).id };
  const form = { name: 'CI', homepage: '', description: '', redirectUris: [KEPT, REMOVED], isPublic: false };
  const { application } = await createApplication(store, world, { form, actor });
  const client = await openAs(service, 'ada');
  const path = `/account/applications/${application.clientId}`;
  const opened = await openForm(client, path, { name: 'CI', homepage: '', description: '', redirect_uri: BOTH });
  await client.submit(path, path, { name: 'CI', homepage: '', description: '', redirect_uri: KEPT, device: '1' });
  return { client, opened, read: async () => await findApplication(store, application.clientId) };
}

/** Returns a function that sends this form as it is now, whenever it is called, with the fields that a person edited. */
async function openForm(client: FormClient, path: string, shown: Readonly<Record<string, string>>) {
  const hidden = readHidden((await client.get(path)).body, path);
  return (edited: Readonly<Record<string, string>>) => client.post(path, { ...hidden, ...shown, ...edited });
}

test('a redirect address that was removed meanwhile does not come back with another change of the application', async (t) => {
  const { opened, read } = await openApplication(t);
  assert.match((await opened({ description: 'Builds.' })).location ?? '', /\?done=saved$/);
  const stored = await read();
  assert.deepEqual([stored?.redirectUris, stored?.description], [[KEPT], 'Builds.']);
  assert.deepEqual(stored?.grantTypes, ['authorization_code', 'refresh_token', 'device_code']);
});

test('a form that was opened before an upgrade, when it held the values themselves, is saved, and undoes no later change', async (t) => {
  const { client, read } = await openApplication(t);
  const { clientId = '' } = (await read()) ?? {};
  const path = `/account/applications/${clientId}`;
  const { csrf_token = '' } = readHidden((await client.get(path)).body, path);
  const former = { name: 'CI', homepage: '', description: '', redirectUris: `${KEPT}\n${REMOVED}` };
  const typed = { name: 'Ships', homepage: '', description: 'Builds.', redirect_uri: BOTH, device: '1' };
  const saved = await client.post(path, { csrf_token, shown: JSON.stringify(former), ...typed });
  assert.equal(saved.location, `${path}?done=saved`);
  const stored = await read();
  assert.deepEqual([stored?.name, stored?.description, stored?.redirectUris], ['Ships', 'Builds.', [KEPT]]);
});

test('an application whose redirect addresses were changed by both forms is shown as it is now', async (t) => {
  const { client, opened, read } = await openApplication(t);
  const refused = await client.readRefusal(
    opened({ name: 'Ships', redirect_uri: `${BOTH}\r\nhttps://new.example/cb` }),
  );
  assert.equal(refused.status, 422);
  assert.match(refused.body, /What you changed was changed elsewhere meanwhile/);
  assert.match(refused.body, new RegExp(`<textarea id="field-redirect_uri"[^>]*>${KEPT}</textarea>`));
  assert.match(refused.body, /name="name" type="text" value="Ships"/, 'what was typed elsewhere stays');
  assert.match(refused.body, /name="device" value="1" checked/);
  const stored = await read();
  assert.deepEqual([stored?.name, stored?.redirectUris], ['CI', [KEPT]]);
});

test('an application that is as long as the rules allow is registered and changed on its pages', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  // A browser sends each of these characters as nine bytes, and each one of the addresses as three.
  const texts = { homepage: 'https://ci.example/'.padEnd(2000, '说'), description: '说'.repeat(1000) };
  const uris = Array.from({ length: 20 }, (_, index) => `https://ci.example/${index}?`.padEnd(2000, '&'));
  const fields = { name: '说'.repeat(100), ...texts, redirect_uri: uris.join('\r\n') };
  const list = '/account/applications';
  const { location } = await client.submit(`${list}/new`, list, { ...fields, kind: 'confidential' });
  const path = location?.split('?')[0] ?? '';
  assert.equal((await client.submit(path, path, { ...fields, name: 'CI' })).location, `${path}?done=saved`);
  const stored = await findApplication(service.store, path.replace(`${list}/`, ''));
  assert.deepEqual([stored?.name, stored?.description, stored?.redirectUris], ['CI', texts.description, uris]);
});

test('a name that is saved in a form opened earlier leaves the address that was changed meanwhile', async (t) => {
  const service = await servePages(t);
  const { id } = await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const opened = await openForm(client, '/account', { name: 'Ada Lovelace', email: 'ada@example.org' });
  await client.submit('/account', '/account', { name: 'Ada Lovelace', email: 'new@example.org' });
  assert.equal((await opened({ name: 'Ada King' })).location, '/account?done=saved');
  const stored = await findUserById(service.store, id);
  assert.deepEqual([stored?.name, stored?.email], ['Ada King', 'new@example.org']);
  const refused = await client.readRefusal(opened({ name: 'Ada', email: 'third@example.org' }));
  assert.match(refused.body, /changed elsewhere meanwhile.*value="Ada King".*value="new@example.org"/s);
});
