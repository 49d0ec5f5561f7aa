import assert from 'node:assert/strict';
import { test } from 'node:test';
import { insertTestHook } from '../../test/support/deliveries-store.ts';
import { forEachEngine } from '../../test/support/engines.ts';
import { runTrivet } from '../../test/support/run-trivet.ts';
import { createDataDir, startProgram } from '../../test/support/start-program.ts';
import { issueTicket, takeTicket } from '../authorization/accounts/ticket-store.ts';
import { findPendingTotpSeed, offerTotpSeed } from '../authorization/accounts/totp-store.ts';
import { SEALED_IN_AUTHORIZATION } from '../authorization/maintenance/authorization-secrets-store.ts';
import { createSigningKeys } from '../authorization/tokens/signing-keys.ts';
import { resealPlace } from '../database/reseal-store.ts';
import { checkVaultKeys, SEALED_CANARY } from '../database/startup/vault-keys.ts';
import type { Store } from '../database/store.ts';
import { createVault, type Vault } from '../vault/vault.ts';
import { sealSecret } from '../webhooks/hooks/hook.ts';
import { bridgeBinding, createBridgeStore } from '../webhooks/intake/bridge-store.ts';
import { SEALED_IN_WEBHOOKS } from '../webhooks/management/hook-secrets-store.ts';
import { realWorld } from '../world.ts';

const world = realWorld;
const PLACES = [...SEALED_IN_AUTHORIZATION, ...SEALED_IN_WEBHOOKS, SEALED_CANARY];
const HOOKS = 450;
const former = new Uint8Array(32).fill(1);
const current = new Uint8Array(32).fill(2);

/** One secret in each place, and more webhooks than fit into a batch. */
async function sealSome(store: Store, vault: Vault): Promise<{ ticket: string }> {
  for (let id = 1; id <= HOOKS; id += 1) {
    const secret = sealSecret(vault, id, `key ${id}`) ?? undefined;
    await insertTestHook(store, { id, url: 'http://127.0.0.1/', ...(secret !== undefined && { secret }) });
  }
  await createBridgeStore(store).put(1, 'github', vault.seal('bridge', bridgeBinding(1, 'github')), 0);
  await offerTotpSeed(store, vault, { userId: 'ada', seed: 'SEED' });
  await createSigningKeys({ store, vault, world }).findCurrent();
  await checkVaultKeys(store, vault);
  return { ticket: await issueTicket({ store, vault, world }, 'setup', { content: { a: 1 }, lifetimeMs: 60_000 }) };
}

async function resealAll(store: Store, vault: Vault): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const place of PLACES) counts[place.name] = await resealPlace({ store, vault }, place);
  return counts;
}

forEachEngine('reseal leaves nothing that needs the former key, however often it was interrupted', async (store) => {
  const { ticket } = await sealSome(store, createVault([former], world));
  const both = createVault([current, former], world);
  const hooks = PLACES.find(({ name }) => name === 'keys of webhooks')!;
  const interrupted = resealPlace({ store, vault: both }, hooks, () => {
    throw new Error('killed');
  });
  await assert.rejects(interrupted, /killed/);
  const counts = await resealAll(store, both);
  assert.equal(counts['keys of webhooks'], HOOKS - 200, 'what was done before the interruption is passed over');
  assert.equal(counts['former keys of webhooks'], 0);
  for (const place of ['secrets of bridges', 'seeds of authenticator apps', 'signing keys', 'sign-ins under way'])
    assert.equal(counts[place], 1, place);
  assert.ok(
    Object.values(await resealAll(store, both)).every((count) => count === 0),
    'nothing is left to do',
  );

  const vault = createVault([current], world);
  await checkVaultKeys(store, vault);
  assert.equal(await findPendingTotpSeed(store, vault, 'ada'), 'SEED');
  assert.deepEqual(await takeTicket({ store, vault, world }, 'setup', ticket), { a: 1 });
  const sealed = await createBridgeStore(store).findSecret(1, 'github');
  assert.equal(vault.open(sealed!, bridgeBinding(1, 'github')).toString(), 'bridge');
  assert.ok(await createSigningKeys({ store, vault, world }).findCurrent());
});

forEachEngine('reseal stops at a box whose key it was not given, and does not touch it', async (store) => {
  await sealSome(store, createVault([former], world));
  const stranger = createVault([current], world);
  const hooks = PLACES.find(({ name }) => name === 'keys of webhooks')!;
  await assert.rejects(resealPlace({ store, vault: stranger }, hooks), /its key is not here/);
  await checkVaultKeys(store, createVault([former], world));
});

test('trivet vault reseal lets the former key go', async () => {
  const dataDir = createDataDir();
  const [one, two] = [former, current].map((key) => Buffer.from(key).toString('base64'));
  await (await startProgram({ SECRET_KEYS: one! }, dataDir)).stop();
  const run = await runTrivet(['vault', 'reseal'], { env: { TRIVET_DATA_DIR: dataDir, SECRET_KEYS: `${two},${one}` } });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stdout, /the word that keys are checked with +1/);
  await assert.rejects(
    startProgram({ SECRET_KEYS: one! }, dataDir),
    /sealed with a key that this program was not given/,
  );
  await using program = await startProgram({ SECRET_KEYS: two! }, dataDir);
  assert.equal((await fetch(`${program.httpUrl}/readyz`)).status, 200);
});
