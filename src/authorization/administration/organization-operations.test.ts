/** The audit log names the actor of a change of members, and of a revoked token: a person, their application, or a command. */
import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { addUser } from '../../../test/support/pages/page-service.ts';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { type Actor, type AnyOperation, COMMAND_LINE } from '../../operations/operation.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { createOrganization } from '../accounts/organization-store.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';
import { findEvents } from './audit-operations.ts';
import { setEmail } from './manage-people.ts';
import { addMember, dropMember, implementOrganizations } from './organization-operations.ts';
import { implementTokens, revokeToken } from './token-operations.ts';

const world = createStillWorld();

async function readNewest(store: Store) {
  const [event] = await listEvents(store, { limit: 1 });
  return event;
}

forEachEngine('a member who is changed by a command did not do it', async (store, { place }) => {
  await addUser({ store, world }, 'ada');
  const { id: userId } = await addUser({ store, world }, 'grace');
  const { dataDir, databaseUrl } = place;
  const env = { TRIVET_DATA_DIR: dataDir, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }) };
  const trivet = async (...argv: string[]) => {
    const run = await runTrivet(argv, { env });
    assert.equal(run.code, 0, run.stderr);
  };
  await trivet('org', 'create', 'acme', '--owner', 'ada');
  const changes = [
    { argv: ['org', 'add', 'acme', 'grace', '--role', 'owner'], role: 'owner' },
    { argv: ['org', 'remove', 'acme', 'grace'], role: 'none' },
  ];
  for (const { argv, role } of changes) {
    await trivet(...argv);
    const event = await readNewest(store);
    assert.deepEqual([event?.kind, event?.userId, event?.actorId], ['organization_changed', userId, undefined]);
    assert.deepEqual([event?.details?.role, event?.details?.by], [role, 'command line']);
  }
  assert.deepEqual((await findEvents(store, { by: 'grace', limit: 50 })).found, []);
});

forEachEngine('a role and a verified address that are so already are not recorded again', async (store) => {
  const { id: userId } = await addUser({ store, world }, 'grace');
  const root = await addUser({ store, world }, 'root', true);
  await createOrganization(store, world, { login: 'acme', name: 'Acme', ownerId: root.id });
  const implementations = implementOrganizations({ store, world });
  const put = implementations.find(({ operation }) => operation === addMember);
  const context = { actor: COMMAND_LINE, file: new Uint8Array() };
  const kinds = async () => (await listEvents(store, { userId, limit: 9 })).map(({ kind }) => kind).sort();
  for (const role of ['member', 'member', 'owner', 'owner'])
    await put?.handle({ organization: 'acme', login: 'grace', role }, context);
  for (const email of ['grace@example.net', 'grace@example.net'])
    await setEmail({ store, world }, COMMAND_LINE, { login: 'grace', email });
  assert.deepEqual(await kinds(), ['organization_changed', 'organization_changed', 'user_changed']);
});

forEachEngine('what an application does for an administrator names both', async (store) => {
  const { id: userId } = await addUser({ store, world }, 'grace');
  const root = await addUser({ store, world }, 'root', true);
  await createOrganization(store, world, { login: 'acme', name: 'Acme', ownerId: root.id });
  const form = { userId, name: 'ci', scopes: ['all_user'] as const, expiresAtMs: undefined };
  const { token } = await createPersonalToken(store, world, form);

  const actor: Actor = { userId: root.id, login: 'root', isAdmin: true, clientId: 'app_x', address: '192.0.2.1' };
  const dependencies = { store, world };
  const implementations = [...implementOrganizations(dependencies), ...implementTokens(dependencies)];
  const call = (operation: AnyOperation, input: object) =>
    implementations.find((each) => each.operation === operation)?.handle(input, { actor, file: new Uint8Array() });
  const member = { organization: 'acme', login: 'grace' };
  const calls: [AnyOperation, object][] = [
    [addMember, { ...member, role: 'member' }],
    [dropMember, member],
    [revokeToken, { login: 'grace', tokenId: token.tokenId }],
  ];
  for (const [operation, input] of calls) {
    world.moveMs(1);
    await call(operation, input);
    const event = await readNewest(store);
    const { userId: touched, actorId, clientId, address } = event ?? {};
    assert.deepEqual([touched, actorId, clientId, address], [userId, root.id, 'app_x', '192.0.2.1'], operation.name);
  }
});
