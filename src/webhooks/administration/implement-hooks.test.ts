/** Operations on webhooks of all repositories, while others change the same webhooks. */
import assert from 'node:assert/strict';
import { HOOKS, type ManagementServer, withDoors } from '../../../test/support/webhooks/webhook-management.ts';
import { type Store, statement } from '../../database/store.ts';
import { type AnyOperation, COMMAND_LINE } from '../../operations/operation.ts';
import type { Management } from '../management/management.ts';
import { changeHook, disableHook, enableHook, listHooks } from './hook-operations.ts';
import { implementHooks } from './implement-hooks.ts';

async function perform(management: Management, operation: AnyOperation, input: object) {
  const implementation = implementHooks({ management, passwords: 'hidden' }).find((one) => one.operation === operation);
  assert.ok(implementation);
  return await implementation.handle(operation.input.parse(input), { actor: COMMAND_LINE, file: new Uint8Array() });
}

const URL_1 = 'http://127.0.0.1:9001/hook';

async function createHook(server: ManagementServer, repository = 'doors'): Promise<number> {
  const json = { url: URL_1 };
  const { body } = await server.call('POST', HOOKS.replace('doors', repository), { json });
  return body.id;
}

const cases: [title: string, operation: AnyOperation, input: object][] = [
  ['a change without a url', changeHook, { push_events: false }],
  ['a change that sends back the url', changeHook, { url: URL_1, push_events: false }],
  ['enabling', enableHook, {}],
];
for (const [title, operation, input] of cases)
  withDoors(`${title} keeps a url that was changed while the address was checked`, async (server) => {
    const id = await createHook(server);
    const url = 'http://127.0.0.1:9002/moved';
    const checkUrl = async () => {
      assert.equal((await server.call('PATCH', `${HOOKS}/${id}`, { json: { url } })).status, 200);
      return await server.management.guard.checkUrl(url);
    };
    const changed = await perform({ ...server.management, guard: { checkUrl } }, operation, { id, ...input });
    assert.equal(changed.url, url);
    assert.equal((await perform(server.management, disableHook, { id })).url, url);
  });

const changesSql = statement<{ details: string }>(
  'test-hook-changes',
  `SELECT details FROM audit_events WHERE kind = 'hook_changed'`,
);

withDoors(
  'a change that sends back what it read keeps what was changed meanwhile, and is recorded as what it changes',
  async (server, store) => {
    const id = await createHook(server);
    const { body: read } = await server.call('GET', `${HOOKS}/${id}`);
    const meanwhile = {
      url: `${URL_1}/moved`,
      encryption_type: 1,
      profile: 'gitlab',
      push_events: false,
      password: 'new',
    };
    const checkUrl = async () => {
      assert.equal((await server.call('PATCH', `${HOOKS}/${id}`, { json: meanwhile })).status, 200);
      return await server.management.guard.checkUrl(meanwhile.url);
    };
    const management = { ...server.management, guard: { checkUrl } };
    const { url, encryption_type, profile, push_events } = read;
    const sent = { url, encryption_type, profile, push_events, note_events: true, password: 'other' };
    await perform(management, changeHook, { id, ...sent });
    const { body: after } = await server.call('GET', `${HOOKS}/${id}`);
    for (const [name, value] of Object.entries({ ...meanwhile, password: 'other', note_events: true }))
      assert.equal(after[name], value, name);
    const fields = (await store.read(changesSql)).map((row): string => JSON.parse(row.details).fields);
    assert.deepEqual(fields.toSorted(), ['note_events', 'url encryption_type profile push_events']);
  },
);

withDoors('an empty password counts as not given, and remove_password takes the password away', async (server) => {
  const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1, password: 'sesame' } });
  const readPassword = async () => (await server.call('GET', `${HOOKS}/${hook.id}`)).body.password;
  await perform(server.management, changeHook, { id: hook.id, password: '' });
  assert.equal(await readPassword(), 'sesame');
  await perform(server.management, changeHook, { id: hook.id, password: '', remove_password: true });
  assert.equal(await readPassword(), '');
});

/** The store; `beforeRepository` runs before a repository is read. */
function interrupt(store: Store, beforeRepository: () => Promise<void>): Store {
  return {
    ...store,
    read: async (statement, parameters) => {
      if (statement.name.startsWith('repository-by-id')) await beforeRepository();
      return await store.read(statement, parameters);
    },
  };
}

withDoors('the list of all webhooks leaves out those whose repository is deleted meanwhile', async (server, store) => {
  for (const name of ['attic', 'cellar']) await server.call('POST', '/user/repos', { json: { name } });
  const staying = await createHook(server);
  const going = await createHook(server, 'attic');
  const further = await createHook(server, 'cellar');
  const management: Management = {
    ...server.management,
    store: interrupt(store, async () => void (await server.call('DELETE', '/repos/grace/attic'))),
  };
  assert.ok(staying < going && going < further);
  const first = await perform(management, listHooks, { limit: 2 });
  assert.deepEqual(
    first.hooks.map(({ id }: { id: number }) => id),
    [staying],
  );
  const second = await perform(management, listHooks, { limit: 2, after: first.next });
  assert.deepEqual(
    second.hooks.map(({ id }: { id: number }) => id),
    [further],
  );
  assert.equal(second.next, null);
});
