/** The page of an application changes only the grants that it shows. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { addUser, openAs, servePages } from '../../../test/support/pages/page-service.ts';
import { createApplication } from '../applications/application.ts';
import type { ApplicationForm } from '../applications/application-form.ts';
import { findApplication, type GrantType } from '../applications/application-store.ts';

const CALLBACK = 'https://client.example/cb';

async function openPage(t: TestContext, form: Partial<ApplicationForm>) {
  const service = await servePages(t);
  const { store, world } = service;
  const ada = await addUser(service, 'ada');
  const given = { name: 'Harbour CI', homepage: '', description: '', redirectUris: [CALLBACK], isPublic: false };
  const actor = { userId: ada.id };
  const { application } = await createApplication(store, world, { form: { ...given, ...form }, actor });
  const client = await openAs(service, 'ada');
  const path = `/account/applications/${application.clientId}`;
  const save = (fields: Record<string, string>) =>
    client.submit(path, path, { name: 'Harbour CI', homepage: '', description: '', ...fields });
  const readGrants = async () => (await findApplication(store, application.clientId))?.grantTypes;
  return { client, save, readGrants };
}

const cases: [title: string, before: GrantType[], fields: Record<string, string>, after: GrantType[]][] = [
  ['does not give refresh_token back', ['authorization_code'], {}, ['authorization_code']],
  ['does not give authorization_code back', ['device_code'], { device: '1' }, ['device_code']],
  [
    'gives and takes what its boxes show',
    ['authorization_code', 'client_credentials'],
    { device: '1' },
    ['authorization_code', 'device_code'],
  ],
  [
    'takes authorization_code with the last redirect address',
    ['authorization_code', 'refresh_token', 'device_code'],
    { device: '1', redirect_uri: '' },
    ['refresh_token', 'device_code'],
  ],
];
for (const [title, grantTypes, fields, after] of cases)
  test(`saving an application ${title}`, async (t) => {
    const { save, readGrants } = await openPage(t, { grantTypes });
    assert.match((await save({ redirect_uri: CALLBACK, ...fields })).location ?? '', /\?done=saved$/);
    assert.deepEqual(await readGrants(), after);
  });

test('saving an application gives authorization_code with the first redirect address', async (t) => {
  const { save, readGrants } = await openPage(t, { redirectUris: [], grantTypes: ['device_code'] });
  await save({ device: '1', redirect_uri: CALLBACK });
  assert.deepEqual(await readGrants(), ['authorization_code', 'device_code']);
});

test('an application that could never get a token is not saved', async (t) => {
  const { client, save, readGrants } = await openPage(t, { redirectUris: [], grantTypes: ['device_code'] });
  const refused = await client.readRefusal(save({ redirect_uri: '' }));
  assert.equal(refused.status, 422);
  assert.deepEqual(await readGrants(), ['device_code']);
});
