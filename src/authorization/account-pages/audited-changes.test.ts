import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addUser, openAs, PASSWORD, servePages } from '../../../test/support/pages/page-service.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';

test('what a signed-in person changes is in the audit log with the address, and only what changed', async (t) => {
  const service = await servePages(t);
  const { store, world } = service;
  const { id: userId } = await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  await client.submit('/account', '/account', { name: 'Ada', email: 'ada@example.org' });
  const path = '/account/security';
  const change = (current: string, password: string) =>
    client.submit(path, `${path}/password`, { current, password, revoke: '1' });
  await change(PASSWORD, 'a second long password');
  const list = async () => {
    const events = await listEvents(store, { userId, limit: 20 });
    return events.map(({ kind, address }) => `${kind} ${address}`).sort();
  };
  const changes = ['password_changed 127.0.0.1', 'sign_in 127.0.0.1', 'user_changed 127.0.0.1'];
  assert.deepEqual(await list(), changes, 'there was no token to revoke');
  const token = { userId, name: 'ci', scopes: ['all_user'], expiresAtMs: undefined } as const;
  await createPersonalToken(store, world, { ...token, address: '192.0.2.1' });
  await change('a second long password', 'a third long password');
  const more = ['password_changed 127.0.0.1', 'personal_token_created 192.0.2.1', 'personal_token_revoked 127.0.0.1'];
  assert.deepEqual(await list(), [...changes, ...more].sort());
});
