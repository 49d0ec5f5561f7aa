import assert from 'node:assert/strict';
import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runTrivet } from '../../test/support/programs/run-trivet.ts';
import { createDataDir, startProgram } from '../../test/support/programs/start-program.ts';
import { forEachEngine } from '../../test/support/store/engines.ts';
import { insertTestHook } from '../../test/support/webhooks/deliveries-store.ts';
import { issueOneTimeToken, redeemOneTimeToken } from '../authorization/accounts/one-time-token-store.ts';
import { findPendingTotp, offerTotpSeed } from '../authorization/accounts/totp-store.ts';
import { ENCRYPTED_IN_AUTHORIZATION } from '../authorization/maintenance/authorization-secrets-store.ts';
import { createSigningKeys } from '../authorization/tokens/signing-keys.ts';
import { reencryptColumn } from '../database/reencrypt-store.ts';
import { checkEncryptionKeys, ENCRYPTED_CANARY } from '../database/startup/encryption-keys.ts';
import { type Store, statement } from '../database/store.ts';
import { createSecretCipher, type SecretCipher } from '../encryption/secret-cipher.ts';
import { ENCRYPTED_MAILS } from '../mail/mail-store.ts';
import { encryptSecret } from '../webhooks/hooks/hook.ts';
import { bridgeAssociatedData, findBridgeCiphertext, putBridgeSecret } from '../webhooks/intake/bridge-store.ts';
import { ENCRYPTED_IN_WEBHOOKS } from '../webhooks/management/hook-secrets-store.ts';
import { realWorld } from '../world.ts';

const world = realWorld;
const COLUMNS = [...ENCRYPTED_IN_AUTHORIZATION, ...ENCRYPTED_IN_WEBHOOKS, ENCRYPTED_MAILS, ENCRYPTED_CANARY];
const HOOKS = 450;
const deleteHookSql = statement('test-delete-hook', 'DELETE FROM hooks WHERE id = $1');
const former = new Uint8Array(32).fill(1);
const current = new Uint8Array(32).fill(2);

/** One secret in each column, and more webhooks than fit into a batch. */
async function encryptSome(store: Store, cipher: SecretCipher): Promise<{ ticket: string }> {
  for (let id = 1; id <= HOOKS; id += 1) {
    const secret = encryptSecret(cipher, id, `key ${id}`) ?? undefined;
    await insertTestHook(store, { id, url: 'http://127.0.0.1/', ...(secret !== undefined && { secret }) });
  }
  await putBridgeSecret(
    store,
    {
      repositoryId: 1,
      host: 'github',
      ciphertext: cipher.encrypt('bridge', bridgeAssociatedData(1, 'github')),
      nowMs: 0,
    },
    [],
  );
  await offerTotpSeed(store, cipher, { userId: 'ada', seed: 'SEED' });
  await createSigningKeys({ store, cipher, world }).findCurrent();
  await checkEncryptionKeys(store, cipher);
  return {
    ticket: await issueOneTimeToken({ store, cipher, world }, 'setup', { content: { a: 1 }, lifetimeMs: 60_000 }),
  };
}

async function reencryptAll(store: Store, cipher: SecretCipher): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const column of COLUMNS) counts[column.name] = (await reencryptColumn({ store, cipher }, column)).encrypted;
  return counts;
}

forEachEngine('reseal leaves nothing that needs the former key, however often it was interrupted', async (store) => {
  const { ticket } = await encryptSome(store, createSecretCipher([former], world));
  const both = createSecretCipher([current, former], world);
  const hooks = COLUMNS.find(({ name }) => name === 'keys of webhooks')!;
  const interrupted = reencryptColumn({ store, cipher: both }, hooks, () => {
    throw new Error('killed');
  });
  await assert.rejects(interrupted, /killed/);
  const counts = await reencryptAll(store, both);
  assert.equal(counts['keys of webhooks'], HOOKS - 200, 'what was done before the interruption is passed over');
  assert.equal(counts['former keys of webhooks'], 0);
  for (const column of ['secrets of bridges', 'seeds of authenticator apps', 'signing keys', 'sign-ins under way'])
    assert.equal(counts[column], 1, column);
  assert.ok(
    Object.values(await reencryptAll(store, both)).every((count) => count === 0),
    'nothing is left to do',
  );

  const cipher = createSecretCipher([current], world);
  await checkEncryptionKeys(store, cipher);
  assert.equal((await findPendingTotp(store, cipher, 'ada'))?.seed, 'SEED');
  assert.deepEqual(await redeemOneTimeToken({ store, cipher, world }, 'setup', ticket), { a: 1 });
  const secret = await findBridgeCiphertext(store, 1, 'github');
  assert.equal(cipher.decrypt(secret!, bridgeAssociatedData(1, 'github')).toString(), 'bridge');
  assert.ok(await createSigningKeys({ store, cipher, world }).findCurrent());
});

forEachEngine(
  'reseal names a ciphertext that it cannot read, does not touch it, and encrypts the others',
  async (store) => {
    const stranger = createSecretCipher([new Uint8Array(32).fill(3)], world);
    await encryptSome(store, createSecretCipher([former], world));
    await insertTestHook(store, { id: HOOKS + 1, url: 'http://127.0.0.1/', secret: encryptSecret(stranger, 7, 'x')! });
    const both = createSecretCipher([current, former], world);
    const hooks = COLUMNS.find(({ name }) => name === 'keys of webhooks')!;
    assert.deepEqual(await reencryptColumn({ store, cipher: both }, hooks), {
      encrypted: HOOKS,
      unreadable: [`Cannot decrypt the secret of hook:${HOOKS + 1}: its key is not here`],
    });
    const [left] = await store.read(hooks.list, [both.keyPrefix, 2, 0]);
    assert.equal(left?.key_1, HOOKS + 1);
    assert.equal(stranger.decrypt(left.ciphertext, 'hook:7').toString(), 'x');
  },
);

forEachEngine(
  'trivet vault reseal with a secret that it cannot read encrypts the others, and keeps the former key needed',
  async (store, { place }) => {
    await encryptSome(store, createSecretCipher([former], world));
    await insertTestHook(store, { id: HOOKS + 1, url: 'http://127.0.0.1/', secret: new Uint8Array(40) });
    const [one, two] = [former, current].map((key) => Buffer.from(key).toString('base64'));
    const env = {
      TRIVET_DATA_DIR: place.dataDir,
      SECRET_KEYS: `${two},${one}`,
      ...(place.databaseUrl && { DATABASE_URL: place.databaseUrl }),
    };
    const run = await runTrivet(['vault', 'reseal'], { env });
    assert.equal(run.code, 1, run.stderr);
    assert.match(run.stdout, new RegExp(`keys of webhooks +${HOOKS} +1\\n`));
    assert.doesNotMatch(run.stdout, /the test value/);
    assert.match(
      run.stderr,
      new RegExp(`1 cannot be read\\n.*hook:${HOOKS + 1}: its key is not here\\nKeep the other keys`),
    );
    await assert.rejects(checkEncryptionKeys(store, createSecretCipher([current], world)), /was not given/);
    await store.write(deleteHookSql, [HOOKS + 1]);
    assert.equal((await runTrivet(['vault', 'reseal'], { env })).code, 0);
    await checkEncryptionKeys(store, createSecretCipher([current], world));
  },
);

test('trivet vault reseal lets the former key go', async () => {
  const dataDir = createDataDir();
  const [one, two] = [former, current].map((key) => Buffer.from(key).toString('base64'));
  await (await startProgram({ SECRET_KEYS: one! }, dataDir)).stop();
  const run = await runTrivet(['vault', 'reseal'], { env: { TRIVET_DATA_DIR: dataDir, SECRET_KEYS: `${two},${one}` } });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stdout, /the test value for checking keys +1/);
  await assert.rejects(
    startProgram({ SECRET_KEYS: one! }, dataDir),
    /encrypted with a key that this program was not given/,
  );
  await using program = await startProgram({ SECRET_KEYS: two! }, dataDir);
  assert.equal((await fetch(`${program.httpUrl}/readyz`)).status, 200);
});

test('trivet vault reseal waits for a service that does not know the new key, by its content alone', async () => {
  const dataDir = createDataDir();
  const keys = join(dataDir, 'keys');
  const former = startProgram({}, dataDir);
  const reseal = () => runTrivet(['vault', 'reseal'], { env: { TRIVET_DATA_DIR: dataDir } });
  const assertDone = async (title: string) => {
    const { code, stderr } = await reseal();
    assert.equal(code, 0, `${title}: ${stderr}`);
  };
  const program = await former;
  await assertDone('the first start, which made the file');
  const later = new Date(realWorld.nowMs() + 60_000);
  utimesSync(keys, later, later);
  await assertDone('a file that was touched');
  writeFileSync(keys, `${Buffer.from(current).toString('base64')}\n${readFileSync(keys, 'utf8')}`);
  const earlier = new Date(realWorld.nowMs() - 3_600_000);
  utimesSync(keys, earlier, earlier);
  const early = await reseal();
  assert.equal(early.code, 1);
  assert.match(early.stderr, /does not encrypt with the first key; restart it with this key in front/);
  await program.kill();
  await assertDone('a service that was killed, and left its file');
  await using _restarted = await startProgram({}, dataDir);
  await assertDone('the service with the new key');
});

test('trivet vault reseal waits for a service that knows the new key and still encrypts with the former one', async () => {
  const dataDir = createDataDir();
  const [one, two] = [former, current].map((key) => Buffer.from(key).toString('base64'));
  const reseal = () =>
    runTrivet(['vault', 'reseal'], { env: { TRIVET_DATA_DIR: dataDir, SECRET_KEYS: `${two},${one}` } });
  await using program = await startProgram({ SECRET_KEYS: `${one},${two}` }, dataDir);
  const early = await reseal();
  assert.equal(early.code, 1, early.stdout);
  assert.match(early.stderr, /does not encrypt with the first key; restart it with this key in front/);
  await program.stop();
  await using _restarted = await startProgram({ SECRET_KEYS: `${two},${one}` }, dataDir);
  const { code, stderr } = await reseal();
  assert.equal(code, 0, stderr);
  assert.match(stderr, /restart it first, and run this again/);
});
