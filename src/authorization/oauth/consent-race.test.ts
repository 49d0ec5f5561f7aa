import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Procedure, Store, Transaction } from '../../database/store.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { hashSecret } from '../accounts/secret-text.ts';
import { createUser } from '../accounts/user-store.ts';
import { createApplication } from '../applications/application.ts';
import { type AllowedCode, insertAllowedCode } from './protocol/code-store.ts';
import { findConsent, revokeConsent } from './protocol/consent-store.ts';

const world = createStillWorld();
const REDIRECT_URI = 'https://client.example/callback';

async function prepareParties(store: Store) {
  const person = { login: 'ada', name: 'Ada', email: null, isAdmin: false, passwordHash: null };
  const { id: userId } = await createUser(store, world, person);
  const form = { name: 'App', homepage: '', description: '', isPublic: false, redirectUris: [REDIRECT_URI] };
  const { application } = await createApplication(store, world, { form, actor: { userId: undefined } });
  return { userId, clientId: application.clientId };
}

/** The person presses "Allow". */
function allow(parties: { readonly userId: string; readonly clientId: string }, newConsentId: string): AllowedCode {
  const nowMs = world.nowMs();
  return {
    decision: { ...parties, asked: ['all_user'], allowedScopes: ['all_user'], newConsentId, nowMs },
    code: {
      ...parties,
      codeHash: hashSecret(newConsentId),
      credentialGeneration: 0,
      redirectUri: REDIRECT_URI,
      codeChallenge: undefined,
      scope: 'all_user',
      nonce: undefined,
      authTimeMs: nowMs,
      issuedAtMs: nowMs,
      expiresAtMs: nowMs + 60_000,
    },
    audit: auditStatement({ kind: 'consent_granted', ...parties }, nowMs),
  };
}

/** The same procedure, but another call commits after its first statement, which reads the consent. */
function interrupt<Input, Result>(
  procedure: Procedure<Input, Result>,
  commit: () => Promise<void>,
): Procedure<Input, Result> {
  let isCommitted = false;
  const wrap = (transaction: Transaction): Transaction => ({
    run: async (statement, parameters) => {
      const rows = await transaction.run(statement, parameters);
      const isFirst = !isCommitted;
      isCommitted = true;
      if (isFirst) await commit();
      return rows;
    },
    runAll: (statements) => transaction.runAll(statements),
  });
  return { ...procedure, run: (transaction, input) => procedure.run(wrap(transaction), input) };
}

forEachEngine('a consent that is taken back while it is given again does not come back', async (store, { engine }) => {
  const parties = await prepareParties(store);
  const revoke = () => revokeConsent(store, { ...parties, nowMs: world.nowMs() });
  const readConsentId = async () => (await findConsent(store, parties.userId, parties.clientId))?.consentId;
  await store.call(insertAllowedCode, allow(parties, 'first'));
  await store.call(insertAllowedCode, allow(parties, 'same'));
  assert.equal(await readConsentId(), 'first');
  // On SQLite nothing commits between two statements of a procedure.
  if (engine === 'sqlite') await revoke();
  const again = engine === 'sqlite' ? insertAllowedCode : interrupt(insertAllowedCode, revoke);
  await store.call(again, allow(parties, 'second'));
  assert.equal(await readConsentId(), 'second');
});
