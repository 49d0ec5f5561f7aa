/**
 * The transaction of a request checks again: a promotion, or another change of the account, may commit between the first check
 * and the transaction.
 */
import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { addUser } from '../../../test/support/pages/page-service.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { hasCode } from '../../../test/support/store/note-store.ts';
import type { Store } from '../../database/store.ts';
import { createSecretCipher } from '../../encryption/secret-cipher.ts';
import { type Actor, COMMAND_LINE } from '../../operations/operation.ts';
import { changeProfile } from '../account-pages/profile-store.ts';
import { findUserByLogin } from '../accounts/user-store.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';
import { listPersonalTokens } from '../tokens/personal-token-store.ts';
import { orderPasswordLink } from './invite-people.ts';
import {
  disablePerson,
  enablePerson,
  resetPassword,
  resetSecondStep,
  setAdministrator,
  setEmail,
  verifyOwnEmail,
} from './manage-people.ts';
import { implementTokens, revokeToken } from './token-operations.ts';

const world = createStillWorld();
const cipher = createSecretCipher([new Uint8Array(32).fill(1)], world);
const baseUrl = 'https://trivet.example';

/** An actor with a token of the scope `admin:people`. */
const HELPER: Actor = { userId: '1'.repeat(24), login: 'helper', isAdmin: false };
const LOGIN = 'grace';

/** A store in which `change` commits after the reads of a request and before its first write. */
function changedBeforeWrite(store: Store, change: () => Promise<unknown>): Store {
  let changed: Promise<unknown> | undefined;
  const once = () => {
    changed ??= change();
    return changed;
  };
  return {
    ...store,
    call: (procedure, input) => once().then(() => store.call(procedure, input)),
    write: (statement, parameters) => once().then(() => store.write(statement, parameters)),
    writeAll: (statements, options) => once().then(() => store.writeAll(statements, options)),
  };
}

const promote = (store: Store) => setAdministrator({ store, world }, COMMAND_LINE, { login: LOGIN, isAdmin: true });

type Operation = (store: Store, tokenId: string) => Promise<unknown>;

const OPERATIONS: readonly [title: string, operation: Operation, isDisabled?: true][] = [
  ['disable', (store) => disablePerson({ store, world }, HELPER, LOGIN)],
  ['enable', (store) => enablePerson({ store, world }, HELPER, LOGIN), true],
  [
    'set a password',
    (store) => {
      const password = 'the helper knows this one';
      return resetPassword({ store, world }, HELPER, { login: LOGIN, password, deleteTokens: false });
    },
  ],
  ['turn off the second step of', (store) => resetSecondStep({ store, world }, HELPER, LOGIN)],
  ['set the address of', (store) => setEmail({ store, world }, HELPER, { login: LOGIN, email: 'h@evil.example' })],
  [
    'make a link for',
    (store) => orderPasswordLink({ store, world, cipher, baseUrl }, HELPER, { login: LOGIN, sendsMail: false }),
  ],
  [
    'revoke a token of',
    async (store, tokenId) => {
      const revoke = implementTokens({ store, world }).find(({ operation }) => operation === revokeToken);
      await revoke?.handle({ login: LOGIN, tokenId }, { actor: HELPER, file: new Uint8Array() });
    },
  ],
];

for (const [title, operation, isDisabled] of OPERATIONS)
  forEachEngine(`a token without all rights cannot ${title} an administrator promoted meanwhile`, async (store) => {
    const { id: userId } = await addUser({ store, world }, LOGIN);
    const form = { userId, name: 'ci', scopes: ['all_user'] as const, expiresAtMs: undefined };
    const { token } = await createPersonalToken(store, world, form);
    await addUser({ store, world }, 'root', true);
    if (isDisabled) await disablePerson({ store, world }, COMMAND_LINE, LOGIN);
    const before = await findUserByLogin(store, LOGIN);
    const raced = changedBeforeWrite(store, () => promote(store));
    await assert.rejects(operation(raced, token.tokenId), hasCode('forbidden'));
    const { administratorSinceMs: _, isAdmin, ...after } = (await findUserByLogin(store, LOGIN))!;
    assert.equal(isAdmin, true);
    assert.deepEqual({ ...before, ...after }, before, 'nothing else of the account changed');
    assert.equal((await listPersonalTokens(store, userId)).length, 1);
  });

forEachEngine('an address that its person replaced meanwhile is not verified', async (store) => {
  const { id, name } = await addUser({ store, world }, LOGIN);
  const email = 'grace@example.org';
  await changeProfile(store, id, { name, email });
  const raced = changedBeforeWrite(store, () => changeProfile(store, id, { name, email: 'other@example.org' }));
  const root: Actor = { userId: '2'.repeat(24), login: 'root', isAdmin: true };
  await assert.rejects(verifyOwnEmail({ store: raced, world }, root, { login: LOGIN, email }), hasCode('conflict'));
  const user = await findUserByLogin(store, LOGIN);
  assert.deepEqual([user?.email, user?.isEmailVerified], ['other@example.org', false]);
  await verifyOwnEmail({ store, world }, root, { login: LOGIN, email: 'other@example.org' });
  assert.equal((await findUserByLogin(store, LOGIN))?.isEmailVerified, true);
});

forEachEngine('a second administrator cannot be disabled while the first one is removed', async (store) => {
  await addUser({ store, world }, LOGIN, true);
  await addUser({ store, world }, 'root', true);
  const removeRoot = () => setAdministrator({ store, world }, COMMAND_LINE, { login: 'root', isAdmin: false });
  const raced = changedBeforeWrite(store, removeRoot);
  await assert.rejects(disablePerson({ store: raced, world }, COMMAND_LINE, LOGIN), hasCode('conflict'));
  assert.equal((await findUserByLogin(store, LOGIN))?.disabledAtMs, null);
});
