/** An update changes the given fields and leaves the others. */
import assert from 'node:assert/strict';
import {
  checkRefusal,
  HOOKS,
  type ManagementServer,
  withDoors,
} from '../../../test/support/webhooks/webhook-management.ts';
import { type Store, statement } from '../../database/store.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { holdSeenHookQueueStatement } from '../delivery/queue/delivery-store.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { findHook, updateHook } from './manage-hook.ts';

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

const answerSql = statement('test-answer-of-receiver', `UPDATE hooks SET result = 'down', result_code = 503`);

withDoors('another url clears the last response; the same url keeps it', async (server, store) => {
  const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1 } });
  const path = `${HOOKS}/${hook.id}`;
  const readResult = async (url: string) => {
    await server.call('PATCH', path, { json: { url, active: false } });
    const { body } = await server.call('GET', path);
    return [body.url, body.result, body.result_code];
  };
  await store.write(answerSql);
  assert.deepEqual(await readResult(URL_1), [URL_1, 'down', 503]);
  assert.deepEqual(await readResult(`${URL_1}/other`), [`${URL_1}/other`, null, 0]);
  await store.write(answerSql);
  await server.call('PATCH', path, { json: { url: `${URL_1}/other`, push_events: false } });
  assert.deepEqual(await readResult(`${URL_1}/other`), [`${URL_1}/other`, 'down', 503]);
});

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

withDoors('a password is removed only by remove_password; an empty one removes nothing', async (server) => {
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

withDoors('a password with a blank at an end is refused where it travels in a header', async (server, store) => {
  const { body: hook } = await server.call('POST', HOOKS, {
    json: { url: URL_1, password: ' pw', encryption_type: 1 },
  });
  const update = (changes: object) => server.call('PATCH', `${HOOKS}/${hook.id}`, { json: { url: URL_1, ...changes } });
  const rule = 'Cannot update the webhook: password must not begin or end with a blank: it travels in a header';
  const refused = await update({ encryption_type: 0 });
  assert.deepEqual([refused.status, refused.body.error_message], [400, rule]);
  for (const other of [{ password: 'pw' }, { remove_password: true }])
    assert.equal((await update({ encryption_type: 0, ...other })).status, 200, JSON.stringify(other));
  assert.equal((await update({ password: 'pw ' })).body.error_message, rule);

  assert.equal((await update({ encryption_type: 1, password: 'pw ' })).status, 200);
  await store.write(statement('test-header-password', 'UPDATE hooks SET encryption_type = 0'));
  const { body: read } = await server.call('GET', `${HOOKS}/${hook.id}`);
  assert.equal((await update({ ...read, note_events: true })).body.note_events, true, 'one from before the rule');
});

withDoors('a password with a blank at an end is taken where the profile sends none', async (server) => {
  const json = { url: URL_1, password: 'pw ', profile: 'github' };
  const created = await server.call('POST', HOOKS, { json });
  assert.deepEqual([created.status, created.body.password], [201, 'pw ']);
  const update = (changes: object) =>
    server.call('PATCH', `${HOOKS}/${created.body.id}`, { json: { url: URL_1, ...changes } });
  assert.equal((await update({ password: ' pw' })).body.password, ' pw');
  for (const profile of ['gitcode', 'gitee', 'gitlab']) {
    const { status, body } = await update({ profile });
    assert.equal(status, 400, profile);
    assert.match(body.error_message, /^Cannot update the webhook: password must not begin or end with a blank/);
    assert.equal((await update({ profile, encryption_type: 1 })).status, 200);
    assert.equal((await update({ profile: 'github', encryption_type: 0 })).status, 200);
  }
  assert.equal((await update({ profile: 'gitcode', password: 'pw' })).status, 200);
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

const pauseSql = statement(
  'test-pause-hook-queue',
  `UPDATE endpoint_queue SET fails = 7, failing_since_ms = 1000, openings = 2, parked = 1, paused_since_ms = 2000,
     pause_reason = 'failures', next_at_ms = 4102444800000`,
);
const disableSql = statement(
  'test-disable-hook',
  "UPDATE hooks SET disabled_at_ms = 3000, disabled_reason = 'Failed for days'",
);
const countRecordsSql = statement<{ kind: string; count: number }>(
  'test-count-records',
  `SELECT kind, COUNT(*) AS count FROM audit_events WHERE kind LIKE 'hook_%' GROUP BY kind`,
);
const countRecords = async (store: Store) =>
  Object.fromEntries((await store.read(countRecordsSql)).map(({ kind, count }) => [kind, count]));
const healthSql = statement<{ version: number }>(
  'test-hook-queue-health',
  `SELECT fails, failing_since_ms, openings, parked, paused_since_ms, pause_reason, next_at_ms, held_since_ms, version
   FROM endpoint_queue`,
);

/** A hook with a waiting delivery. */
async function createHookInUse(server: ManagementServer): Promise<{ id: number }> {
  const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1 } });
  const json = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));
  assert.equal((await server.call('POST', '/repos/grace/doors/events', { json })).status, 202);
  return hook;
}

withDoors('`active: true` sent back as it was read resets no failure and ends no pause', async (server, store) => {
  const hook = await createHookInUse(server);
  await store.write(pauseSql);
  const readHealth = async () => {
    const { version: _, ...health } = (await store.read(healthSql))[0]!;
    return health;
  };
  const before = await readHealth();
  const { body: read } = await server.call('GET', `${HOOKS}/${hook.id}`);
  assert.equal(read.active, true);
  assert.equal((await server.call('PATCH', `${HOOKS}/${hook.id}`, { json: read })).status, 200);
  assert.deepEqual(await readHealth(), before);
  const moved = await server.call('PATCH', `${HOOKS}/${hook.id}`, { json: { ...read, url: `${URL_1}/other` } });
  assert.equal(moved.status, 200);
  assert.deepEqual({ ...(await readHealth()), next_at_ms: 0 }, NOTHING_FAILED);
});

const NOTHING_FAILED = {
  fails: 0,
  failing_since_ms: null,
  openings: 0,
  parked: 0,
  paused_since_ms: null,
  pause_reason: null,
  next_at_ms: 0,
  held_since_ms: null,
};

withDoors('`active: true` releases a hook that was disabled after it was read', async (server, store) => {
  const hook = await createHookInUse(server);
  const { management } = server;
  const repository = await management.access.find('grace', 'doors');
  const stored = await findHook(management, repository, hook.id);
  await store.write(pauseSql);
  await store.write(disableSql);
  const [{ version: seen } = { version: 0 }] = await store.read(healthSql);
  const enabled = await updateHook(management, { repository, stored, actor: COMMAND_LINE }, { active: true });
  assert.equal(enabled.hook.disabledAtMs, null);
  // A worker that read the hook before tries to hold it.
  await store.writeAll([holdSeenHookQueueStatement(hook.id, seen, 4000)]);
  const { version: _, ...health } = (await store.read(healthSql))[0]!;
  assert.deepEqual({ ...health, next_at_ms: 0 }, NOTHING_FAILED);
});

withDoors('another url switches a hook on that was disabled after it was read', async (server, store) => {
  const hook = await createHookInUse(server);
  const { management } = server;
  const repository = await management.access.find('grace', 'doors');
  const stored = await findHook(management, repository, hook.id);
  await store.write(disableSql);
  const moved = await updateHook(management, { repository, stored, actor: COMMAND_LINE }, { url: `${URL_1}/other` });
  assert.deepEqual([moved.hook.disabledAtMs, moved.hook.disabledReason], [null, null]);
  assert.deepEqual(await countRecords(store), { hook_changed: 1, hook_created: 1, hook_enabled: 1 });
});

withDoors('the audit log records a switch of a hook only if it was switched', async (server, store) => {
  const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1 } });
  const { management } = server;
  const repository = await management.access.find('grace', 'doors');
  const change = async (active: boolean) => {
    const seen = { repository, stored: await findHook(management, repository, hook.id), actor: COMMAND_LINE };
    return () => updateHook(management, seen, { active });
  };
  // Of two changes that read the same state, only the first one switches the hook.
  for (const active of [false, true]) for (const run of [await change(active), await change(active)]) await run();
  assert.deepEqual(await countRecords(store), { hook_created: 1, hook_disabled: 1, hook_enabled: 1 });
});

withDoors('a worker that saw a hook as disabled does not hold it once it is enabled', async (server, store) => {
  const hook = await createHookInUse(server);
  const [{ version: seen } = { version: 0 }] = await store.read(healthSql);
  await server.call('PATCH', `${HOOKS}/${hook.id}`, { json: { url: URL_1, active: true } });
  await store.writeAll([holdSeenHookQueueStatement(hook.id, seen, 4000)]);
  assert.equal((await store.read<{ version: number; held_since_ms?: number }>(healthSql))[0]?.held_since_ms, null);
});

const changes: [title: string, change: (hook: OpenHook) => Promise<unknown>][] = [
  ['switches a webhook off', (hook) => hook.switch(false)],
  ['switches a webhook on', (hook) => hook.switch(true)],
  ['rotates the key of a webhook', (hook) => hook.rotateKey('third')],
  ['removes the key of a webhook', (hook) => hook.removeKey()],
];
for (const [title, change] of changes)
  withDoors(`the console keeps a url that was changed meanwhile when it ${title}`, async (server) => {
    const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1, password: 'first' } });
    const open = await openHook(server, hook.id);
    const json = { url: 'http://127.0.0.1:9002/moved', password: 'second' };
    assert.equal((await server.call('PATCH', `${HOOKS}/${hook.id}`, { json })).status, 200);
    await change(open);
    assert.equal((await server.call('GET', `${HOOKS}/${hook.id}`)).body.url, json.url);
  });

type OpenHook = Awaited<ReturnType<typeof openHook>>;

async function openHook({ admin }: ManagementServer, id: number) {
  const grace = { userId: 'id-grace', login: 'grace', isAdmin: false };
  return await (await admin.openRepository(grace, 'grace', 'doors')).openHook(String(id));
}
