/** A promotion that ends all ways to sign in to an account, and commits while a sign-in with one of them is in progress. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSoftwarePasskey } from '../../../test/support/authorization/software-passkey.ts';
import { createFormClient, type FormClient } from '../../../test/support/network/form-client.ts';
import {
  addUser,
  type PageService,
  type PageServiceOptions,
  servePages,
} from '../../../test/support/pages/page-service.ts';
import { linkAccount, startWithProvider, visitProvider } from '../../../test/support/pages/upstream-provider.ts';
import type { Store } from '../../database/store.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { insertPasskeyStatement } from '../accounts/passkey-store.ts';
import { createSession } from '../accounts/session-store.ts';
import { findUserByLogin } from '../accounts/user-store.ts';
import { setAdministrator, setEmail } from '../administration/manage-people.ts';

/** Promotes ada after the first statement whose name matches, once it is armed. */
function promoteAfter(name: RegExp) {
  let isArmed = false;
  const wrapStore = (store: Store): Store => {
    const promote = async () => {
      isArmed = false;
      const world = { nowMs: () => Date.now() } as PageService['world'];
      assert.equal(await setAdministrator({ store, world }, COMMAND_LINE, { login: 'ada', isAdmin: true }), true);
    };
    const follow = async <T>(statement: { readonly name: string }, result: Promise<T>): Promise<T> => {
      const done = await result;
      if (isArmed && name.test(statement.name)) await promote();
      return done;
    };
    return {
      ...store,
      read: (statement, parameters) => follow(statement, store.read(statement, parameters)),
      write: (statement, parameters) => follow(statement, store.write(statement, parameters)),
    };
  };
  return {
    options: { wrapStore } satisfies PageServiceOptions,
    arm: () => {
      isArmed = true;
    },
    hasHappened: () => !isArmed,
  };
}

/** An account in which a token without all rights may have set a way to sign in. */
async function addMarkedPerson(service: PageService) {
  const { id: userId } = await addUser(service, 'ada');
  const helper = { userId: '1'.repeat(24), login: 'helper', isAdmin: false };
  await setEmail(service, helper, { login: 'ada', email: 'ada@company.example' });
  return { userId };
}

async function checkShutOut(service: PageService, client: FormClient): Promise<void> {
  const user = await findUserByLogin(service.store, 'ada');
  assert.deepEqual([user?.isAdmin, user?.isEmailVerified], [true, false]);
  assert.equal((await client.get('/account')).status, 303, 'no session is open');
}

test('a passkey that a promotion deletes makes no session', async (t) => {
  const race = promoteAfter(/^use-passkey$/);
  const service = await servePages(t, { hostname: 'localhost', ...race.options });
  const { userId } = await addMarkedPerson(service);
  const passkey = createSoftwarePasskey(service.url);
  const { id, publicKey } = passkey;
  const stored = { id, userId, name: 'Key', publicKey, counter: 0, transports: [], createdAtMs: 1 };
  await service.store.writeAll([insertPasskeyStatement(stored)]);

  const signIn = async () => {
    const client = createFormClient(service.url);
    const csrf_token = /name="csrf_token" value="([^"]+)"/.exec((await client.get('/sign-in')).body)?.[1] ?? '';
    const { body } = await client.post('/sign-in/passkey/options', { csrf_token });
    const { ticket, options } = JSON.parse(body) as { ticket: string; options: { challenge: string } };
    const credential = passkey.signIn(options.challenge);
    return { client, answer: await client.post('/sign-in/passkey', { csrf_token, ticket, credential }) };
  };
  const before = await signIn();
  assert.equal(before.answer.location, '/');
  assert.equal((await before.client.get('/account')).status, 200);
  race.arm();
  const { client } = await signIn();
  assert.ok(race.hasHappened());
  await checkShutOut(service, client);
});

test('an account at the provider that a promotion unlinks makes no session and verifies no address', async (t) => {
  const race = promoteAfter(/upstream-account$/);
  const service = await startWithProvider(t, 'closed', race.options);
  const { userId } = await addMarkedPerson(service);
  const user = { id: userId, credentialGeneration: 0 };
  const { store, world } = service;
  const { token } = await createSession(store, world, { user, method: 'password', address: '-', userAgent: '' });
  const owner = createFormClient(service.url, new Map([['trivet_session', token]]));
  assert.equal((await linkAccount(service, owner, 'ada')).location, '/account/security?done=linked');
  assert.equal((await visitProvider(service, createFormClient(service.url), 'ada')).answer.location, '/');
  race.arm();
  const client = createFormClient(service.url);
  await visitProvider(service, client, 'ada');
  assert.ok(race.hasHappened());
  await checkShutOut(service, client);
});
