/** A new administrator's account loses the ways to sign in that a token without all rights has set. */
import assert from 'node:assert/strict';
import { giveSecondStep } from '../../../test/support/authorization/second-step.ts';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { addUser } from '../../../test/support/pages/page-service.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { createSecretCipher } from '../../encryption/secret-cipher.ts';
import { isFailure } from '../../errors.ts';
import { type Actor, COMMAND_LINE } from '../../operations/operation.ts';
import { addWayInOnce } from '../accounts/access-store.ts';
import { auditStatement, listEvents } from '../accounts/audit-store.ts';
import { insertPasskeyStatement, listPasskeys } from '../accounts/passkey-store.ts';
import { createSession, listSessions } from '../accounts/session-store.ts';
import {
  confirmTotpStatement,
  hasTotp,
  offerTotpSeed,
  replaceRecoveryCodesStatements,
} from '../accounts/totp-store.ts';
import { linkUpstreamStatement, listUpstreamAccounts } from '../accounts/upstream-account-store.ts';
import { findCredentials, findUserByLogin, findUserByVerifiedEmail, type User } from '../accounts/user-store.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';
import { listPersonalTokens } from '../tokens/personal-token-store.ts';
import { invitePerson, orderPasswordLink } from './invite-people.ts';
import { createPerson, resetPassword, resetSecondStep, setAdministrator, setEmail } from './manage-people.ts';

const world = createStillWorld();
const cipher = createSecretCipher([new Uint8Array(32).fill(1)], world);
const baseUrl = 'https://trivet.example';

/** An actor with a token of the scope `admin:people`. */
const HELPER: Actor = { userId: '1'.repeat(24), login: 'helper', isAdmin: false };
const TAKEN = 'ada@example.org';
const PASSWORD = 'the helper knows this one';

/** Each way to sign in that the scope `admin:people` can set, in an account that has others. */
const WAYS: readonly [way: string, set: (store: Store, actor: Actor, login: string) => Promise<unknown>][] = [
  ['address', (store, actor, login) => setEmail({ store, world }, actor, { login, email: 'helper@evil.example' })],
  [
    'password',
    (store, actor, login) => resetPassword({ store, world }, actor, { login, password: PASSWORD, deleteTokens: false }),
  ],
  [
    'second step',
    async (store, actor, login) => {
      await giveSecondStep(store, login);
      await resetSecondStep({ store, world }, actor, login);
    },
  ],
  [
    'link',
    (store, actor, login) => orderPasswordLink({ store, world, cipher, baseUrl }, actor, { login, sendsMail: false }),
  ],
];

/** Added by the person, or by a stranger who can sign in. */
async function addWaysIn(store: Store, { login }: Pick<User, 'login'>): Promise<User> {
  const user = (await findUserByLogin(store, login))!;
  const { id: userId } = user;
  assert.equal(await addPasskey(store, user), true);
  const link = { issuer: 'https://op.example', subject: login, userId, label: login, linkedAtMs: world.nowMs() };
  await store.writeAll([linkUpstreamStatement(link)]);
  await offerTotpSeed(store, cipher, { userId, seed: 'JBSWY3DPEHPK3PXP' });
  await store.writeAll([
    confirmTotpStatement({ userId, timeStep: 1, nowMs: world.nowMs() }),
    ...replaceRecoveryCodesStatements(userId, ['abcd-efgh']),
  ]);
  await createSession(store, world, { user, method: 'password', address: '-', userAgent: '' });
  await createPersonalToken(store, world, { userId, name: 'ci', scopes: ['all_user'], expiresAtMs: undefined });
  return user;
}

/** Uses the credential generation that was read with the session. */
async function addPasskey(store: Store, { id: userId, login, credentialGeneration }: User): Promise<boolean> {
  const key = { name: 'key', publicKey: Uint8Array.of(1), counter: 0, transports: [], createdAtMs: world.nowMs() };
  const insert = insertPasskeyStatement({ ...key, id: `passkey of ${login}`, userId });
  const audit = auditStatement({ kind: 'passkey_added', userId }, world.nowMs());
  return (await store.call(addWayInOnce, { userId, credentialGeneration, insert, audit })) === 'added';
}

async function listWaysIn(store: Store, login: string): Promise<string[]> {
  const { user, passwordHash } = (await findCredentials(store, login))!;
  const ways: Readonly<Record<string, boolean>> = {
    password: passwordHash !== null,
    address: user.isEmailVerified,
    'second step': await hasTotp(store, user.id),
    passkey: (await listPasskeys(store, user.id)).length > 0,
    'linked account': (await listUpstreamAccounts(store, user.id)).length > 0,
    session: (await listSessions(store, user.id, world.nowMs())).length > 0,
    token: (await listPersonalTokens(store, user.id)).length > 0,
  };
  return Object.keys(ways).filter((way) => ways[way]);
}

const promote = (store: Store, login: string) =>
  setAdministrator({ store, world }, COMMAND_LINE, { login, isAdmin: true });

for (const [way, set] of WAYS)
  forEachEngine(`a new administrator has no way in if a token without all rights set the ${way}`, async (store) => {
    const login = 'grace';
    const before = await addUser({ store, world }, login);
    await set(store, HELPER, login);
    await addWaysIn(store, before);
    assert.equal(await promote(store, login), true);
    assert.deepEqual(await listWaysIn(store, login), []);
    const user = (await findUserByLogin(store, login))!;
    assert.deepEqual([user.isAdmin, user.passwordChangedAtMs, user.hasDelegatedAccess], [true, null, false]);
    const raised = user.credentialGeneration > before.credentialGeneration;
    assert.ok(raised, 'tokens of applications, codes and links of before are worthless');
  });

forEachEngine('a new administrator whom a token without all rights created has no way in', async (store) => {
  const blank = { name: 'Grace', email: null };
  await createPerson({ store, world }, HELPER, { ...blank, login: 'grace', isAdmin: false, password: PASSWORD });
  const invitation = { ...blank, login: 'linus', email: 'helper@evil.example', sendsMail: false };
  await invitePerson({ store, world, cipher, baseUrl }, HELPER, invitation);
  for (const login of ['grace', 'linus']) {
    assert.equal(await promote(store, login), true);
    assert.deepEqual(await listWaysIn(store, login), [], login);
  }
});

forEachEngine('what was set with all rights, or by the person, stays', async (store) => {
  const login = 'grace';
  const user = await addUser({ store, world }, login);
  for (const [, set] of WAYS) await set(store, COMMAND_LINE, login);
  await addWaysIn(store, user);
  const before = await listWaysIn(store, login);
  assert.equal(before.length, 7);
  assert.equal(await promote(store, login), false);
  assert.deepEqual(await listWaysIn(store, login), before);
});

forEachEngine('an account whose address a token without all rights could not verify is not marked', async (store) => {
  await setEmail({ store, world }, COMMAND_LINE, {
    login: (await addUser({ store, world }, 'ada')).login,
    email: TAKEN,
  });
  const { login, email } = await addUser({ store, world }, 'grace');
  const set = (change: { readonly email: string; readonly seenEmail?: string }) =>
    setEmail({ store, world }, HELPER, { login, ...change });
  await assert.rejects(set({ email: TAKEN }), /is the verified address of another account/);
  await assert.rejects(set({ email: 'grace@example.org', seenEmail: `${email} of before` }), /has another address/);
  assert.equal((await findUserByLogin(store, login))!.hasDelegatedAccess, false);
  await set({ email: 'grace@example.org' });
  assert.equal((await findUserByLogin(store, login))!.hasDelegatedAccess, true);
});

forEachEngine('an administrator who is made one again keeps all ways in', async (store) => {
  const login = 'grace';
  await addUser({ store, world }, login);
  await setEmail({ store, world }, HELPER, { login, email: 'grace@example.org' });
  await promote(store, login);
  await resetPassword({ store, world }, COMMAND_LINE, { login, password: PASSWORD, deleteTokens: false });
  assert.equal(await promote(store, login), false);
  assert.deepEqual(await listWaysIn(store, login), ['password']);
});

forEachEngine(
  'a change without all rights at the moment of the promotion is refused, or ends with it',
  async (store) => {
    for (let round = 0; round < 8; round += 1) {
      const login = `grace${round}`;
      await addUser({ store, world }, login);
      const email = `helper${round}@evil.example`;
      const changes = [
        setEmail({ store, world }, HELPER, { login, email }),
        promote(store, login),
        orderPasswordLink({ store, world, cipher, baseUrl }, HELPER, { login, sendsMail: false }),
      ];
      for (const outcome of await Promise.allSettled(changes))
        if (outcome.status === 'rejected')
          assert.ok(isFailure(outcome.reason) && outcome.reason.code === 'forbidden', String(outcome.reason));
      assert.equal((await findUserByLogin(store, login))?.isAdmin, true);
      assert.equal(await findUserByVerifiedEmail(store, email), undefined);
    }
  },
);

forEachEngine('a passkey that a session adds while it ends is not stored', async (store) => {
  const user = await addUser({ store, world }, 'grace');
  await setEmail({ store, world }, HELPER, { login: 'grace', email: 'helper@evil.example' });
  await promote(store, 'grace');
  assert.equal(await addPasskey(store, user), false);
  assert.deepEqual(await listPasskeys(store, user.id), []);
});

forEachEngine('a new administrator without a way in does not count as one who can sign in', async (store) => {
  await addUser({ store, world }, 'root', true);
  await addUser({ store, world }, 'grace');
  await giveSecondStep(store, 'grace');
  await resetSecondStep({ store, world }, HELPER, 'grace');
  await promote(store, 'grace');
  const resign = () => setAdministrator({ store, world }, COMMAND_LINE, { login: 'root', isAdmin: false });
  await assert.rejects(resign(), /the last administrator who can sign in/);
  await resetPassword({ store, world }, COMMAND_LINE, { login: 'grace', password: PASSWORD, deleteTokens: false });
  await resign();
});

forEachEngine('a second step that a person does not have is not turned off', async (store) => {
  const user = await addUser({ store, world }, 'grace');
  await createSession(store, world, { user, method: 'password', address: '-', userAgent: '' });
  for (const actor of [HELPER, COMMAND_LINE])
    await assert.rejects(resetSecondStep({ store, world }, actor, 'grace'), {
      code: 'not_found',
      message: 'Cannot turn off the second step: grace has none',
    });
  assert.deepEqual(await findUserByLogin(store, 'grace'), user, 'nothing is marked, and no generation raised');
  assert.equal((await listSessions(store, user.id, world.nowMs())).length, 1);
  const events = await listEvents(store, { userId: user.id, limit: 10 });
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['sign_in'],
  );
});

forEachEngine(
  'personal tokens that end with a password of an administrator are recorded, if there are any',
  async (store) => {
    const { id: userId } = await addUser({ store, world }, 'grace');
    const reset = () =>
      resetPassword({ store, world }, COMMAND_LINE, { login: 'grace', password: PASSWORD, deleteTokens: true });
    const listKinds = async () => (await listEvents(store, { userId, limit: 10 })).map(({ kind }) => kind);
    await reset();
    assert.deepEqual(await listKinds(), ['password_changed']);
    await createPersonalToken(store, world, { userId, name: 'ci', scopes: ['all_user'], expiresAtMs: undefined });
    await reset();
    assert.equal((await listKinds()).filter((kind) => kind === 'personal_token_revoked').length, 1);
  },
);
