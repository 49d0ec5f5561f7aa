/** People sign in with codes, passkeys and accounts at providers, besides a password. */
import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type Store, statement } from '../../database/store.ts';
import { createSecretCipher } from '../../encryption/secret-cipher.ts';
import { listEvents } from './audit-store.ts';
import {
  deletePasskeyStatement,
  findPasskey,
  insertPasskeyStatement,
  listPasskeys,
  usePasskey,
} from './passkey-store.ts';
import { setPasswordStatement } from './password-store.ts';
import {
  confirmTotpStatement,
  countRecoveryCodes,
  deleteRecoveryCodesStatement,
  findTotpSeed,
  hasTotp,
  offerTotpSeed,
  replaceRecoveryCodesStatements,
  spendRecoveryCode,
  spendTotpTimeStep,
  stopTotpStatement,
} from './totp-store.ts';
import {
  findUserOfUpstreamAccount,
  linkNewUserStatement,
  linkUpstreamStatement,
  listUpstreamAccounts,
  unlinkUpstreamStatement,
} from './upstream-account-store.ts';
import { createUser, listUsers } from './user-store.ts';

const world = createStillWorld();
const cipher = createSecretCipher([new Uint8Array(32).fill(7)], world);

function createAda(store: Store) {
  return createUser(store, world, { login: 'ada', name: 'Ada', email: null, isAdmin: false, passwordHash: null });
}

forEachEngine('S08 a TOTP seed is encrypted, a time step and a recovery code count once', async (store) => {
  const user = await createAda(store);
  assert.equal(await offerTotpSeed(store, cipher, { userId: user.id, seed: 'JBSWY3DPEHPK3PXP' }), true);
  assert.equal(await hasTotp(store, user.id), false);
  const codes = ['aaaa-bbbb-cccc-dddd', 'eeee-ffff-gggg-hhhh'];
  await store.writeAll([
    confirmTotpStatement({ userId: user.id, timeStep: 10, nowMs: 1 }),
    ...replaceRecoveryCodesStatements(user.id, codes),
  ]);
  assert.equal(await findTotpSeed(store, cipher, user.id), 'JBSWY3DPEHPK3PXP');
  assert.equal(await offerTotpSeed(store, cipher, { userId: user.id, seed: 'OTHER' }), false);
  const rows = await store.read(statement<{ seed: Uint8Array }>('test-all-totp', 'SELECT * FROM totp_secrets'));
  assert.ok(!Buffer.from(rows[0]!.seed).includes('JBSWY3DPEHPK3PXP'));

  assert.equal(await spendTotpTimeStep(store, user.id, 10), false);
  const spent = await Promise.all(Array.from({ length: 10 }, () => spendTotpTimeStep(store, user.id, 11)));
  assert.equal(spent.filter(Boolean).length, 1);
  const recovery = { userId: user.id, code: 'AAAA bbbb-CCCCdddd', address: '192.0.2.1', nowMs: 2 };
  const used = await Promise.all(Array.from({ length: 10 }, () => spendRecoveryCode(store, recovery)));
  assert.equal(used.filter(Boolean).length, 1);
  assert.equal(await countRecoveryCodes(store, user.id), 1);
  const events = await listEvents(store, { userId: user.id, limit: 20 });
  assert.deepEqual(
    events.map(({ kind, address }) => [kind, address]),
    [['recovery_code_used', '192.0.2.1']],
  );
  await store.writeAll([stopTotpStatement(user.id), deleteRecoveryCodesStatement(user.id)]);
  assert.deepEqual([await hasTotp(store, user.id), await countRecoveryCodes(store, user.id)], [false, 0]);
});

forEachEngine('an authenticator app is not turned on in a session that a new password has ended', async (store) => {
  const { id: userId, credentialGeneration } = await createAda(store);
  await offerTotpSeed(store, cipher, { userId, seed: 'JBSWY3DPEHPK3PXP' });
  await store.writeAll([setPasswordStatement(userId, 'a hash', 1)]);
  const confirmation = { userId, timeStep: 10, nowMs: 1 };
  await store.writeAll([confirmTotpStatement({ ...confirmation, credentialGeneration })]);
  assert.equal(await hasTotp(store, userId), false);
  await store.writeAll([confirmTotpStatement({ ...confirmation, credentialGeneration: credentialGeneration + 1 })]);
  assert.equal(await hasTotp(store, userId), true);
});

forEachEngine('a passkey whose counter does not rise is refused, unless the counter is always 0', async (store) => {
  const passkey = {
    userId: 'u1',
    name: 'Key',
    publicKey: Uint8Array.of(1, 2),
    transports: ['usb', 'nfc'],
    createdAtMs: 1,
  };
  const [added] = await store.writeAll([insertPasskeyStatement({ ...passkey, id: 'k1', counter: 5 })]);
  assert.equal(added?.length, 1);
  await store.writeAll([insertPasskeyStatement({ ...passkey, id: 'k2', counter: 0 })]);
  const [twice] = await store.writeAll([insertPasskeyStatement({ ...passkey, id: 'k1', userId: 'thief', counter: 0 })]);
  assert.equal(twice?.length, 0);
  const uses = [];
  for (const [id, counter] of [
    ['k1', 5],
    ['k1', 6],
    ['k1', 6],
    ['k1', 0],
    ['k2', 0],
    ['k2', 0],
    ['k2', 3],
    ['k2', 0],
  ] as const)
    uses.push(await usePasskey(store, { id, counter, nowMs: 2 }));
  assert.deepEqual(uses, [false, true, false, false, true, true, true, false]);
  const found = await findPasskey(store, 'k1');
  assert.deepEqual([found?.userId, found?.transports, found?.lastUsedAtMs], ['u1', ['usb', 'nfc'], 2]);
  assert.deepEqual(Uint8Array.from(found?.publicKey ?? []), Uint8Array.of(1, 2));
  await store.writeAll([deletePasskeyStatement('k1', 'thief')]);
  assert.equal((await listPasskeys(store, 'u1')).length, 2);
  await store.writeAll([deletePasskeyStatement('k1', 'u1')]);
  assert.equal((await listPasskeys(store, 'u1')).length, 1);
});

forEachEngine('one account at a provider is linked with one person, the first to link it', async (store) => {
  const account = { issuer: 'https://op.example', subject: 's', label: 'ada', linkedAtMs: 1 };
  const people = [];
  for (const login of ['ada', 'grace', 'linus']) {
    const person = { login, name: login, email: null, isAdmin: false, passwordHash: null };
    people.push(await createUser(store, world, person));
  }
  const links = await Promise.all(
    people.map(({ id: userId }) => store.writeAll([linkUpstreamStatement({ ...account, userId })])),
  );
  const isLinked = links.map(([rows]) => rows?.length === 1);
  assert.equal(isLinked.filter(Boolean).length, 1);
  const found = await findUserOfUpstreamAccount(store, account.issuer, account.subject);
  assert.deepEqual(found, people[isLinked.indexOf(true)]);
  assert.equal(await findUserOfUpstreamAccount(store, 'https://other.example', account.subject), undefined);
  await store.writeAll([unlinkUpstreamStatement(found!.id, account.issuer)]);
  assert.deepEqual(await listUpstreamAccounts(store, found!.id), []);
});

forEachEngine('of two first visits with one account at a provider, exactly one creates a person', async (store) => {
  const visit = (login: string) =>
    createUser(store, world, { login, name: 'Ada', email: null, isAdmin: false, passwordHash: null }, (userId) => [
      linkNewUserStatement({ issuer: 'https://op.example', subject: 's', userId, label: 'ada', linkedAtMs: 1 }),
    ]);
  const outcomes = await Promise.allSettled(['ada', 'ada-2', 'ada-3'].map(visit));
  const made = outcomes.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value.login);
  assert.equal(made.length, 1);
  assert.deepEqual(
    (await listUsers(store, 10)).map(({ login }) => login),
    made,
  );
});
