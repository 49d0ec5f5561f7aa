/** The key of a webhook in the forms of its pages: an empty field means a random key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FormClient } from '../../../test/support/network/form-client.ts';
import { createHook, FORM, pressButton, REPOSITORY, startHookPages } from '../../../test/support/pages/hook-pages.ts';

const RANDOM_KEY = /^[\w-]{43}$/;

async function readKey(client: FormClient, path: string): Promise<string> {
  return /<code class="secret" data-copy>([^<]*)</.exec((await client.get(path)).body)?.[1] ?? '';
}

test('a form with an empty key makes a webhook with a random one, which signs', async (t) => {
  const { client, receiver } = await startHookPages(t);
  const keys: string[] = [];
  for (let count = 0; count < 2; count += 1) {
    const path = await createHook(client, receiver.url, { password: '' });
    keys.push(await readKey(client, path));
    await pressButton(client, path, 'test');
  }
  for (const key of keys) assert.match(key, RANDOM_KEY);
  assert.notEqual(keys[0], keys[1]);
  for (const { headers } of receiver.received) assert.match(String(headers['x-gitcode-signature-256']), /^sha256=/);
  const path = await createHook(client, receiver.url);
  await pressButton(client, path, 'key', { password: '' });
  assert.match(await readKey(client, path), RANDOM_KEY);
});

test('a refused form with an empty key shows the random one that it will have', async (t) => {
  const { client } = await startHookPages(t);
  const sent = client.submit(`${REPOSITORY}/new`, REPOSITORY, { ...FORM, url: '', password: '' });
  const { body } = await client.readRefusal(sent);
  assert.match(/name="password"[^>]* value="([^"]*)"/.exec(body)?.[1] ?? '', RANDOM_KEY);
});

test('an edit that the stored key forbids is refused with the name of the key, and the refusal has the focus', async (t) => {
  const { client, receiver } = await startHookPages(t);
  const path = await createHook(client, receiver.url, { password: ' k3y' });
  const change = { url: receiver.url, push_events: '1', encryption_type: '0', profile: 'gitcode' };
  const { body } = await client.readRefusal(client.submit(`${path}/change`, `${path}/change`, change));
  assert.match(body, /<div class="notice bad" role="alert" tabindex="-1" autofocus>.*“Key” must not begin or end/);
  assert.equal(body.match(/ autofocus/g)?.length, 1);
});
