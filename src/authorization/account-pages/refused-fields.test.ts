import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addUser, openAs, servePages } from '../../../test/support/pages/page-service.ts';
import { listPersonalTokens } from '../tokens/personal-token-store.ts';

test('a name of a passkey that is too long, or hides characters, is refused and not cut', async (t) => {
  const service = await servePages(t, { hostname: 'localhost' });
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const path = '/account/security';
  assert.match((await client.get(path)).body, /<input id="field-name" name="name"[^>]* maxlength="60"/);
  const name = async (text: string) =>
    (await client.readRefusal(client.submit(path, `${path}/passkeys`, { name: text }))).body;
  assert.match(await name('x'.repeat(61)), /Cannot add the passkey: its name must be at most 60 characters\./);
  assert.match(await name('my\u202ekey'), /its name must be readable, without hidden characters\./);
  assert.match(await name('x'.repeat(60)), /The passkey was not accepted/, 'no authenticator has answered');
  client.jar.set('trivet_language', 'zh-CN');
  assert.match(await name('x'.repeat(61)), /通行密钥的名称最多 60 个字符。/);
});

test('a token whose form names no end that is offered is refused, and not made without one', async (t) => {
  const service = await servePages(t);
  const ada = await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const path = '/account/tokens';
  for (const days of ['', '1e3', '-1', '07']) {
    const { body } = await client.readRefusal(client.submit(path, path, { name: 'ci', scope: 'all_user', days }));
    assert.match(body, /must be one of 7, .*, none, got &quot;/, days);
  }
  assert.deepEqual(await listPersonalTokens(service.store, ada.id), []);
});

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
