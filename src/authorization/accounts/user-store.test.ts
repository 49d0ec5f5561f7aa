import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { statement } from '../../database/store.ts';
import type { Failure } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import { changeProfile } from '../account-pages/profile-store.ts';
import { auditStatement } from './audit-store.ts';
import {
  createOrganization,
  findOrganizationByLogin,
  listMembers,
  removeMember,
  setMember,
} from './organization-store.ts';
import { createOwners } from './owners.ts';
import { rehashPassword } from './password-store.ts';
import {
  createFirstAdministrator,
  createUser,
  disableUserStatement,
  enableUserStatement,
  findCredentials,
  findUserById,
  findUserByLogin,
  hasUsers,
  listUsers,
  type NewUser,
} from './user-store.ts';

const ada: NewUser = {
  login: 'Ada',
  name: 'Ada Lovelace',
  email: 'ada@example.org',
  isAdmin: false,
  passwordHash: 'h1',
};

/** A change of a member, with an event of its own. */
function toChange(organizationId: string, userId: string) {
  return { organizationId, userId, nowMs: 1, audit: auditStatement({ kind: 'organization_changed', userId }, 1) };
}

function hasCode(code: string, field?: string) {
  return (error: Failure): boolean => error.code === code && error.details.field === field;
}

forEachEngine('a created user is found by id and by login in any case', async (store) => {
  assert.equal(await hasUsers(store), false);
  const user = await createUser(store, realWorld, ada);
  assert.match(user.id, /^[0-9a-f]{24}$/);
  assert.deepEqual(await findUserById(store, user.id), user);
  assert.deepEqual(await findUserByLogin(store, 'aDA'), user);
  assert.equal(await findUserByLogin(store, 'missing'), undefined);
  assert.equal(await hasUsers(store), true);
});

forEachEngine('of twenty who ask for one login at once, one gets it', async (store) => {
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) =>
      index % 2 === 0
        ? createUser(store, realWorld, { ...ada, login: index % 4 === 0 ? 'same' : 'SAME' })
        : createOrganizationFor(index),
    ),
  );
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
  async function createOrganizationFor(index: number) {
    return createOrganization(store, realWorld, { login: 'Same', name: `Org ${index}`, ownerId: '0'.repeat(24) });
  }
});

forEachEngine('a login that is not allowed is refused with its field', async (store) => {
  for (const login of ['', '-a', 'a-', 'a/b', 'a b', 'a..b', 'ä', 'a'.repeat(65), '../x'])
    await assert.rejects(createUser(store, realWorld, { ...ada, login }), hasCode('invalid', 'login'), login);
});

forEachEngine('one first administrator is made, however many ask', async (store) => {
  const outcomes = await Promise.allSettled(
    Array.from({ length: 10 }, (_, index) =>
      createFirstAdministrator(store, realWorld, { ...ada, login: `user${index}` }),
    ),
  );
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
  const [only, ...others] = await listUsers(store, 10);
  assert.equal(only?.isAdmin, true);
  assert.deepEqual(others, []);
});

forEachEngine('a rehash never undoes a password that was set meanwhile', async (store) => {
  const user = await createUser(store, realWorld, ada);
  await rehashPassword(store, user.id, 'other', 'h2');
  assert.equal((await findCredentials(store, 'ada'))?.passwordHash, 'h1');
  await rehashPassword(store, user.id, 'h1', 'h2');
  assert.equal((await findCredentials(store, 'ada'))?.passwordHash, 'h2');
});

forEachEngine('a disabled user says since when', async (store) => {
  const user = await createUser(store, realWorld, ada);
  await store.writeAll([disableUserStatement(user.id, 5)]);
  assert.equal((await findUserById(store, user.id))?.disabledAtMs, 5);
  await store.writeAll([disableUserStatement(user.id, 9)]);
  assert.equal((await findUserById(store, user.id))?.disabledAtMs, 5);
});

forEachEngine('users are listed page by page in the order of their logins', async (store) => {
  for (const login of ['carol', 'Bob', 'alice']) await createUser(store, realWorld, { ...ada, login });
  const first = await listUsers(store, 2);
  assert.deepEqual(
    first.map((user) => user.login),
    ['alice', 'Bob'],
  );
  assert.deepEqual(
    (await listUsers(store, 2, first[1]?.login)).map((user) => user.login),
    ['carol'],
  );
});

forEachEngine('an organization is administered by its owners and by administrators only', async (store) => {
  const owner = await createUser(store, realWorld, ada);
  const member = await createUser(store, realWorld, { ...ada, login: 'member' });
  const organization = await createOrganization(store, realWorld, { login: 'Acme', name: 'Acme', ownerId: owner.id });
  await setMember(store, toChange(organization.id, member.id), 'member');
  const owners = createOwners(store);
  const acme = await owners.findOwner('ACME');
  assert.ok(acme);
  assert.deepEqual(acme, { kind: 'organization', id: organization.id, login: 'Acme', name: 'Acme' });
  const can = (userId: string, isAdmin = false) => owners.canAdminister({ userId, isAdmin }, acme);
  assert.deepEqual(
    [await can(owner.id), await can(member.id), await can('stranger'), await can('stranger', true)],
    [true, false, false, true],
  );
  const listOf = async ({ id: userId, login }: { id: string; login: string }) =>
    (await owners.listAdministered({ userId, login })).map((found) => `${found.kind} ${found.login}`);
  assert.deepEqual(await listOf(owner), ['user Ada', 'organization Acme']);
  assert.deepEqual(await listOf(member), ['user member']);
});

forEachEngine('a person is administered by that person and by administrators only', async (store) => {
  const user = await createUser(store, realWorld, ada);
  const owners = createOwners(store);
  const owner = await owners.findOwner('ada');
  assert.ok(owner);
  assert.equal(owner.kind, 'user');
  const can = (userId: string, isAdmin = false) => owners.canAdminister({ userId, isAdmin }, owner);
  assert.deepEqual([await can(user.id), await can('other'), await can('other', true)], [true, false, true]);
  assert.equal(await owners.findOwner('missing'), undefined);
});

forEachEngine('the last owner of an organization cannot be removed, and stays an owner', async (store) => {
  const owner = await createUser(store, realWorld, ada);
  const second = await createUser(store, realWorld, { ...ada, login: 'second' });
  const { id: organizationId } = await createOrganization(store, realWorld, {
    login: 'acme',
    name: 'A',
    ownerId: owner.id,
  });
  const change = ({ id } = owner) => toChange(organizationId, id);
  await assert.rejects(removeMember(store, change()), hasCode('conflict'));
  await assert.rejects(setMember(store, change(), 'member'), hasCode('conflict'));
  await setMember(store, change(), 'owner');
  await setMember(store, change(second), 'owner');
  const resignations = [owner, second].map((person) => setMember(store, change(person), 'member'));
  const outcomes = await Promise.allSettled(resignations);
  assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'both at once');
  await setMember(store, change(second), 'owner');
  await setMember(store, change(), 'owner');
  await store.writeAll([disableUserStatement(second.id, 1)]);
  await assert.rejects(removeMember(store, change()), hasCode('conflict'), 'the other owner is disabled');
  await assert.rejects(setMember(store, change(), 'member'), hasCode('conflict'));
  await store.writeAll([enableUserStatement(second.id)]);
  await removeMember(store, change());
  assert.deepEqual(
    (await listMembers(store, organizationId)).map((member) => member.login),
    ['second'],
  );
  await assert.rejects(removeMember(store, change()), hasCode('not_found'));
  assert.equal((await findOrganizationByLogin(store, 'ACME'))?.login, 'acme');
});

const renameSql = statement('test-rename-user', 'UPDATE users SET name = $2 WHERE id = $1');

forEachEngine('a person whose name has a hidden character from before can change the address', async (store) => {
  const { id } = await createUser(store, realWorld, ada);
  const name = 'Ada\u00ad Lovelace';
  await store.write(renameSql, [id, name]);
  assert.equal(await changeProfile(store, id, { name, email: 'ada@example.com' }), true);
  const changed = await findUserById(store, id);
  assert.deepEqual([changed?.name, changed?.email], [name, 'ada@example.com']);
  await assert.rejects(changeProfile(store, id, { name: `${name}!`, email: null }), hasCode('invalid', 'name'));
});
