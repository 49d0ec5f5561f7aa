/** An account linked at a provider that the service no longer uses cannot sign in. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { addUser, openAs, servePages } from '../../../test/support/pages/page-service.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { hasCode } from '../../../test/support/store/note-store.ts';
import { type Store, statement } from '../../database/store.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { disablePerson, setAdministrator } from '../administration/manage-people.ts';
import { canAnAdministratorSignIn } from './administrator-store.ts';
import { insertPasskeyStatement, listPasskeys } from './passkey-store.ts';
import { linkUpstreamStatement } from './upstream-account-store.ts';
import { createUser } from './user-store.ts';

const OLD = 'https://old.example';
const NEW = 'https://new.example';

const dropPasswordSql = statement(
  'test-drop-password',
  'UPDATE users SET password_hash = NULL, password_changed_at_ms = NULL WHERE id = $1',
);

function link(store: Store, userId: string, issuer: string) {
  return store.writeAll([linkUpstreamStatement({ issuer, subject: userId, userId, label: 'Ada', linkedAtMs: 1 })]);
}

forEachEngine('an administrator with a link to another provider alone cannot be the last one', async (store) => {
  const world = createStillWorld();
  await addUser({ store, world }, 'root', true);
  const person = { login: 'ada', name: 'Ada', email: null, isAdmin: true, passwordHash: null };
  const { id } = await createUser(store, world, person);
  await link(store, id, OLD);
  for (const issuer of [undefined, NEW]) {
    const dependencies = { store, world, upstream: issuer === undefined ? undefined : { config: { issuer } } };
    await assert.rejects(disablePerson(dependencies, COMMAND_LINE, 'root'), hasCode('conflict'));
    const demotion = setAdministrator(dependencies, COMMAND_LINE, { login: 'root', isAdmin: false });
    await assert.rejects(demotion, hasCode('conflict'));
  }
  await disablePerson({ store, world, upstream: { config: { issuer: OLD } } }, COMMAND_LINE, 'root');
  assert.deepEqual(
    [await canAnAdministratorSignIn(store, OLD), await canAnAdministratorSignIn(store, undefined)],
    [true, false],
  );
});

for (const upstream of [
  undefined,
  { issuer: NEW, clientId: 'trivet', name: 'New', scope: 'openid', signUp: 'closed' } as const,
])
  test(`the last passkey stays beside a link to another provider than ${upstream?.name ?? 'none'}`, async (t) => {
    const service = await servePages(t, upstream === undefined ? {} : { upstream: { ...upstream, clientSecret: 'x' } });
    const { store } = service;
    const { id } = await addUser(service, 'ada');
    const client = await openAs(service, 'ada');
    await link(store, id, OLD);
    await store.write(dropPasswordSql, [id]);
    const passkey = {
      id: 'passkey',
      userId: id,
      name: 'Key',
      publicKey: new Uint8Array(1),
      counter: 0,
      transports: [],
    };
    await store.writeAll([insertPasskeyStatement({ ...passkey, createdAtMs: 1 })]);
    const csrf_token = /name="csrf_token" value="([^"]+)"/.exec((await client.get('/account')).body)?.[1] ?? '';
    const remove = () => client.post('/account/security/passkeys/remove', { csrf_token, passkey_id: 'passkey' });
    const refused = await client.readRefusal(remove());
    assert.deepEqual([refused.status, refused.body.includes('This is your only way to sign in')], [422, true]);
    assert.equal((await listPasskeys(store, id)).length, 1);
    if (upstream === undefined) return;
    await link(store, id, NEW);
    assert.equal((await remove()).location, '/account/security?done=saved');
  });
