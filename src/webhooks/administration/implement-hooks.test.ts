/** Operations on webhooks of all repositories, while others change the same webhooks. */
import assert from 'node:assert/strict';
import { HOOKS, type ManagementServer, withDoors } from '../../../test/support/webhooks/webhook-management.ts';
import type { Store } from '../../database/store.ts';
import { type AnyOperation, COMMAND_LINE } from '../../operations/operation.ts';
import type { Management } from '../management/management.ts';
import { changeHook, disableHook, enableHook, listHooks } from './hook-operations.ts';
import { implementHooks } from './implement-hooks.ts';

async function perform(management: Management, operation: AnyOperation, input: object) {
  const implementation = implementHooks({ management, passwords: 'hidden' }).find((one) => one.operation === operation);
  assert.ok(implementation);
  return await implementation.handle(operation.input.parse(input), { actor: COMMAND_LINE, file: new Uint8Array() });
}

async function createHook(server: ManagementServer, repository = 'doors'): Promise<number> {
  const json = { url: 'http://127.0.0.1:9001/hook' };
  const { body } = await server.call('POST', HOOKS.replace('doors', repository), { json });
  return body.id;
}

const cases: [title: string, operation: AnyOperation, input: object][] = [
  ['a change without a url', changeHook, { push_events: false }],
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
