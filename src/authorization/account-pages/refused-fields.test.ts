import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addUser, openAs, servePages } from '../../../test/support/page-service.ts';

test('a refused form says the label of the field, in the language of the reader, on top and at the field', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const fill = async (fields: Readonly<Record<string, string>>) => {
    const page = '/account/applications/new';
    const sent = client.submit(page, '/account/applications', { name: 'CI', kind: 'confidential', ...fields });
    return (await client.readRefusal(sent)).body;
  };
  const sentence = 'Cannot save the application: “Redirect addresses” must name at least one URI.';
  const withoutAddress = await fill({});
  assert.ok(withoutAddress.includes(`</strong>${sentence}</div>`));
  assert.ok(withoutAddress.includes(`id="field-redirect_uri-wrong">${sentence}</p>`));
  const long = await fill({ redirect_uri: 'https://ci.example.org/', description: 'x'.repeat(1001) });
  assert.equal(long.split('“Description” must be at most 1000 characters').length, 3);
  client.jar.set('trivet_language', 'zh-CN');
  assert.ok((await fill({})).includes('</strong>至少需要一个回调地址。</div>'));
});
