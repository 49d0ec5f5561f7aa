/** An update changes the given fields and leaves the others. */
import assert from 'node:assert/strict';
import { checkRefusal, HOOKS, withDoors } from '../../../test/support/webhooks/webhook-management.ts';
import { statement } from '../../database/store.ts';

const URL_1 = 'http://127.0.0.1:9001/hook';

const secretColumnsSql = statement<{ secret: Uint8Array | null; previous_secret: Uint8Array | null }>(
  'test-secret-columns',
  'SELECT secret, previous_secret FROM hooks',
);

withDoors('an update changes what it names, keeps the rest, and answers without id', async (server) => {
  const { body: hook } = await server.call('POST', HOOKS, {
    json: { url: URL_1, password: 'old', encryption_type: 1, issues_events: true },
  });
  const updated = await server.call('PATCH', `${HOOKS}/${hook.id}`, {
    json: { url: 'http://127.0.0.1:9002/', push_events: false },
  });
  assert.equal(updated.status, 200);
  const { id: _, ...rest } = hook;
  assert.deepEqual(updated.body, { ...rest, url: 'http://127.0.0.1:9002/', push_events: false });
  const missing = await server.call('PATCH', `${HOOKS}/${hook.id}`, { json: { push_events: true } });
  checkRefusal(missing, 400, 'PARAMETER_ERROR');
  assert.equal(missing.body.error_code, 1000);
});

withDoors(
  'passwords are encrypted in the store, and a changed one stays valid for signing beside the new',
  async (server, store) => {
    const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1, password: 'first-password' } });
    await server.call('PATCH', `${HOOKS}/${hook.id}`, { json: { url: URL_1, password: 'first-password' } });
    const [unchanged] = await store.read(secretColumnsSql);
    assert.equal(unchanged?.previous_secret, null);
    const { body } = await server.call('PATCH', `${HOOKS}/${hook.id}`, { json: { url: URL_1, password: 'second' } });
    assert.equal(body.password, 'second');
    const [changed] = await store.read(secretColumnsSql);
    for (const column of [changed?.secret, changed?.previous_secret]) {
      assert.ok(column);
      assert.doesNotMatch(Buffer.from(column).toString('latin1'), /first-password|second/);
    }
  },
);

withDoors('a hook can be switched off and on, and another url switches it on again', async (server) => {
  const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1 } });
  const path = `${HOOKS}/${hook.id}`;
  const off = await server.call('PATCH', path, { json: { url: URL_1, active: false } });
  assert.equal(off.body.active, false);
  assert.equal(off.body.disabled_reason, 'Switched off by its owner');
  assert.equal((await server.call('PATCH', path, { json: { url: URL_1 } })).body.active, false);
  assert.equal((await server.call('PATCH', path, { json: { url: URL_1, active: true } })).body.active, true);
  await server.call('PATCH', path, { json: { url: URL_1, active: false } });
  const moved = await server.call('PATCH', path, { json: { url: `${URL_1}/other` } });
  assert.equal(moved.body.active, true);
  assert.equal(moved.body.disabled_at, null);
});

withDoors('a password is taken away only by remove_password; an empty one takes nothing', async (server) => {
  const json = { url: URL_1, password: 'pw', encryption_type: 1 };
  const { body: hook } = await server.call('POST', HOOKS, { json });
  const update = (changes: object) => server.call('PATCH', `${HOOKS}/${hook.id}`, { json: { url: URL_1, ...changes } });
  for (const kept of [{ password: '' }, { password: null }, { remove_password: false }, {}])
    assert.equal((await update(kept)).body.password, 'pw', JSON.stringify(kept));
  const both = await update({ remove_password: true, password: 'new' });
  assert.deepEqual(
    [both.status, both.body.error_message],
    [400, 'Cannot update the webhook: remove_password must not come with a password'],
  );
  const { body } = await update({ remove_password: true });
  assert.deepEqual([body.password, body.encryption_type], ['', 1]);
  assert.equal((await server.call('GET', `${HOOKS}/${hook.id}`)).body.password, '');
});

withDoors('a hook whose address is not allowed any more can be switched off, and not on', async (server, store) => {
  const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1 } });
  const url = 'http://10.0.0.1/hook';
  await store.write(statement('test-move-hook', 'UPDATE hooks SET url = $1'), [url]);
  const update = (changes: object) => server.call('PATCH', `${HOOKS}/${hook.id}`, { json: changes });
  assert.equal((await update({ url, push_events: true })).status, 400);
  const off = await update({ url, active: false });
  assert.deepEqual([off.status, off.body.active], [200, false]);
  assert.equal((await update({ url, active: true })).status, 400);
  assert.equal((await update({ url: 'http://10.0.0.2/', active: false })).status, 400);
});
