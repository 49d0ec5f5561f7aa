import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Configuration } from 'oidc-provider';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { addUser, openAs, PASSWORD, type PageService } from '../../../test/support/pages/page-service.ts';
import {
  linkAccount,
  passProvider,
  startWithProvider,
  visitProvider,
} from '../../../test/support/pages/upstream-provider.ts';
import type { Store } from '../../database/store.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { verifyEmailOnce } from '../accounts/email-store.ts';
import { createUser, disableUserStatement, findUserByLogin } from '../accounts/user-store.ts';
import { createFlow } from './flow.ts';
import { createSetupLink } from './setup-routes.ts';

const SECURITY = '/account/security';
/** Where the account of the provider leads that is linked to no one. */
const UNKNOWN = '/sign-in?done=upstream_unknown';

function createFormer({ store, world }: PageService, login: string) {
  return createUser(store, world, { login, name: login, email: null, isAdmin: false, passwordHash: null });
}

test('an account of the provider that is not linked leads back to the sign-in page unless sign-up is open', async (t) => {
  const service = await startWithProvider(t, 'closed');
  await addUser(service, 'grace');
  const client = createFormClient(service.url);
  assert.match((await client.get('/sign-in')).body, /Sign in with Company/);
  const { answer } = await visitProvider(service, client, 'grace', '/sign-in/upstream?return_to=%2Faccount');
  assert.deepEqual([answer.status, answer.location], [303, '/sign-in?return_to=%2Faccount&done=upstream_unknown']);
  const page = await client.get(answer.location!);
  assert.match(page.body, /This Company account is not linked to an account here/);
  assert.match(page.body, /name="return_to" value="\/account"/, 'another way leads on');
  assert.equal((await client.get('/account')).status, 303);
  const [refused] = await listEvents(service.store, { limit: 1 });
  assert.deepEqual(
    [refused?.kind, refused?.address, refused?.details?.method],
    ['sign_in_failed', '127.0.0.1', 'upstream'],
  );
});

test('with open sign-up a first visit makes an account and a second one finds it', async (t) => {
  const service = await startWithProvider(t, 'open');
  await addUser(service, 'grace');
  const client = createFormClient(service.url);
  const { answer } = await visitProvider(service, client, 'grace', '/sign-in/upstream?return_to=%2Faccount');
  assert.deepEqual([answer.status, answer.location], [303, '/account']);
  const made = await findUserByLogin(service.store, 'grace-2');
  assert.equal(made?.email, 'grace@company.example', 'never merged with the one who has the login here');
  assert.equal(made?.isEmailVerified, true);
  const [created] = (await listEvents(service.store, { limit: 9 })).filter(({ kind }) => kind === 'user_created');
  assert.equal(created?.address, '127.0.0.1');
  const again = createFormClient(service.url);
  await visitProvider(service, again, 'grace');
  assert.match((await again.get('/account')).body, /<dd>grace-2<\/dd>/);
  await visitProvider(service, createFormClient(service.url), 'unverified');
  assert.equal((await findUserByLogin(service.store, 'unverified'))?.email, null);
});

test('a sign-in of a person whose address is verified asks the provider for no userinfo, nor does a refused one', async (t) => {
  let calls = 0;
  const findAccount: Configuration['findAccount'] = (_, id) => ({
    accountId: id,
    claims: (use) => {
      if (use === 'userinfo') calls += 1;
      return {
        sub: id,
        preferred_username: id,
        email: `${id}@company.example`,
        email_verified: !id.startsWith('unverified'),
      };
    },
  });
  const service = await startWithProvider(t, 'open', { provider: { findAccount } });
  const visit = async (login: string) => {
    const before = calls;
    const { answer } = await visitProvider(service, createFormClient(service.url), login);
    assert.equal(answer.location, '/');
    return calls - before;
  };
  assert.deepEqual([await visit('grace'), await visit('grace')], [1, 0]);
  assert.deepEqual([await visit('unverified'), await visit('unverified')], [1, 0], 'there is no address to verify');
  await addUser(service, 'ada');
  await linkAccount(service, await openAs(service, 'ada'), 'unverified-too');
  assert.deepEqual([await visit('unverified-too'), await visit('unverified-too')], [1, 1], 'it may be verified by now');
  const closed = await startWithProvider(t, 'closed', { provider: { findAccount } });
  const before = calls;
  assert.equal((await visitProvider(closed, createFormClient(closed.url), 'stranger')).answer.location, UNKNOWN);
  assert.equal(calls, before);
});

test('the identity token alone names a person where the provider has no userinfo endpoint', async (t) => {
  const provider = { conformIdTokenClaims: false, features: { userinfo: { enabled: false } } };
  const service = await startWithProvider(t, 'open', { provider });
  await visitProvider(service, createFormClient(service.url), 'grace');
  const made = await findUserByLogin(service.store, 'grace');
  assert.deepEqual([made?.name, made?.email], ['grace of the company', 'grace@company.example']);
});

test('an address as the login there becomes a login without its domain', async (t) => {
  const service = await startWithProvider(t, 'open');
  await visitProvider(service, createFormClient(service.url), 'grace@example.org');
  assert.equal((await findUserByLogin(service.store, 'grace'))?.name, 'grace@example.org of the company');
});

test('a person whose names have no letters for a login gets an account, however many came before', async (t) => {
  const service = await startWithProvider(t, 'open');
  await visitProvider(service, createFormClient(service.url), '李');
  assert.equal((await findUserByLogin(service.store, 'user'))?.name, '李');
  for (let number = 2; number <= 50; number += 1) await createFormer(service, `user-${number}`);
  const client = createFormClient(service.url);
  assert.equal((await visitProvider(service, client, '张伟')).answer.location, '/');
  assert.match((await client.get('/account')).body, /<dd>user-[0-9a-f]{8}<\/dd>/);
});

test('without a userinfo a linked person signs in, and a first visit makes no account without a name', async (t) => {
  const service = await startWithProvider(t, 'open');
  await addUser(service, 'ada');
  const ada = await openAs(service, 'ada');
  assert.equal((await linkAccount(service, ada, 'unreadable-1')).location, `${SECURITY}?done=linked`);
  assert.equal((await visitProvider(service, createFormClient(service.url), 'unreadable-1')).answer.location, '/');
  const { answer } = await visitProvider(service, createFormClient(service.url), 'unreadable-2');
  assert.match(answer.location ?? '', /done=upstream_refused/);
  assert.match(service.log(), /Cannot read a profile at the upstream provider/);
  assert.equal(await findUserByLogin(service.store, 'user'), undefined);
});

/** The first two addresses that are verified fail. */
function failToVerify(store: Store): Store {
  let failures = 2;
  const call: Store['call'] = async (procedure, input) => {
    if (failures === 0 || procedure.name !== verifyEmailOnce.name) return await store.call(procedure, input);
    failures -= 1;
    throw new Error('the database is away');
  };
  return { ...store, call };
}

test('a person whose address could not be verified after the link and the sign-in is verified at the next sign-in', async (t) => {
  const claims = (sub: string) => ({ sub, email: `${sub}@example.org`, email_verified: true });
  const findAccount: Configuration['findAccount'] = (_, id) => ({ accountId: id, claims: () => claims(id) });
  const service = await startWithProvider(t, 'closed', { provider: { findAccount }, wrapStore: failToVerify });
  await addUser(service, 'ada');
  await linkAccount(service, await openAs(service, 'ada'), 'ada');
  const client = createFormClient(service.url);
  const { answer } = await visitProvider(service, client, 'ada');
  assert.deepEqual([answer.status, answer.location], [303, '/']);
  assert.equal((await client.get('/account')).status, 200);
  const kinds = (await listEvents(service.store, { limit: 9 })).map(({ kind }) => kind);
  assert.deepEqual(kinds.sort(), ['sign_in', 'sign_in', 'upstream_linked']);
  assert.match(service.log(), /Cannot verify the address of a person at the upstream provider/);
  assert.equal((await findUserByLogin(service.store, 'ada'))?.isEmailVerified, false);
  await visitProvider(service, createFormClient(service.url), 'ada');
  assert.equal((await findUserByLogin(service.store, 'ada'))?.isEmailVerified, true);
});

test('a disabled person of the provider is led back to the sign-in page', async (t) => {
  const service = await startWithProvider(t, 'open');
  await visitProvider(service, createFormClient(service.url), 'grace');
  const grace = await findUserByLogin(service.store, 'grace');
  await service.store.writeAll([disableUserStatement(grace!.id, service.world.nowMs())]);
  const { answer } = await visitProvider(service, createFormClient(service.url), 'grace');
  assert.equal(answer.location, '/sign-in?done=upstream_refused');
});

test('an address that its person removed does not come back at the next sign-in', async (t) => {
  const service = await startWithProvider(t, 'open');
  const client = createFormClient(service.url);
  await visitProvider(service, client, 'grace');
  const name = (await findUserByLogin(service.store, 'grace'))!.name;
  assert.equal((await client.submit('/account', '/account', { name, email: '' })).location, '/account?done=saved');
  await visitProvider(service, createFormClient(service.url), 'grace');
  assert.equal((await findUserByLogin(service.store, 'grace'))?.email, null);
});

test('the way back is good once, and only in the browser that began', async (t) => {
  const service = await startWithProvider(t, 'open');
  const client = createFormClient(service.url);
  const begun = await client.get('/sign-in/upstream');
  const back = (await passProvider(begun.location!, 'mallory')).slice(service.url.length);
  assert.equal((await createFormClient(service.url).get(back)).status, 403, 'another browser');
  assert.equal((await client.get(back)).status, 403, 'the token was redeemed by the attempt');
  const { back: used } = await visitProvider(service, client, 'mallory');
  assert.equal((await client.get(used)).status, 403, 'used');
});

test('the first visitor of an open sign-up leaves the set-up link to the operator', async (t) => {
  const service = await startWithProvider(t, 'open');
  const { search } = new URL((await createSetupLink(service.signIn.context))!);
  await visitProvider(service, createFormClient(service.url), 'early');
  const operator = createFormClient(service.url);
  const given = { login: 'root', name: 'Root', email: '', password: PASSWORD };
  assert.equal((await operator.submit(`/setup${search}`, '/setup', given)).location, '/');
  assert.equal((await findUserByLogin(service.store, 'root'))?.isAdmin, true);
  assert.equal((await findUserByLogin(service.store, 'early'))?.isAdmin, false);
});

test('an address that the profile page would refuse counts as none, at a sign-up and at a sign-in', async (t) => {
  const service = await startWithProvider(t, 'open');
  const { answer } = await visitProvider(service, createFormClient(service.url), 'two words');
  assert.equal(answer.location, '/');
  const made = await findUserByLogin(service.store, 'twowords');
  assert.deepEqual([made?.email, made?.isEmailVerified], [null, false]);
  await visitProvider(service, createFormClient(service.url), 'two words');
  const found = await findUserByLogin(service.store, 'twowords');
  assert.deepEqual([found?.email, found?.isEmailVerified], [null, false]);
});

test('two tabs of one browser finish their sign-ins, whatever comes between', async (t) => {
  const service = await startWithProvider(t, 'open');
  const client = createFormClient(service.url);
  const tabs = [];
  for (const page of ['/account', '/account/security']) {
    const begun = await client.get(`/sign-in/upstream?return_to=${encodeURIComponent(page)}`);
    tabs.push({ page, back: (await passProvider(begun.location!, 'grace')).slice(service.url.length) });
  }
  assert.equal((await client.get('/sign-in/upstream')).status, 303, 'a page of another site leads here');
  assert.equal((await client.get('/sign-in/upstream/callback?state=forged&code=x')).status, 403);
  for (const { page, back } of tabs) assert.equal((await client.get(back)).location, page);
});

test('the way back is not good in the same browser after its person has signed out', async (t) => {
  const service = await startWithProvider(t, 'open');
  const client = createFormClient(service.url);
  await visitProvider(service, client, 'mallory');
  const begun = await client.get('/sign-in/upstream');
  const back = (await passProvider(begun.location!, 'mallory')).slice(service.url.length);
  assert.equal((await client.submit('/account', '/sign-out', {})).status, 303);
  assert.equal((await client.get(back)).status, 403);
});

test('HEAD begins no sign-in, and leaves the way back to the browser', async (t) => {
  const service = await startWithProvider(t, 'open');
  const client = createFormClient(service.url);
  const begun = await client.head('/sign-in/upstream');
  assert.deepEqual([begun.status, begun.headers.get('allow'), begun.cookies], [405, 'GET', []]);
  const { location } = await client.get('/sign-in/upstream');
  const back = (await passProvider(location!, 'grace')).slice(service.url.length);
  assert.equal((await client.head(back)).status, 405);
  assert.equal((await client.get(back)).status, 303);
  assert.equal((await client.get('/account')).status, 200);
});

test('a forged answer of the provider leads back to the sign-in page', async (t) => {
  const service = await startWithProvider(t, 'open');
  const client = createFormClient(service.url);
  const { hidden } = createFlow(service.cipher, '/account', { leadsToClient: true, again: 'yes' });
  const query = new URLSearchParams(hidden as Record<string, string>).toString();
  const begun = await client.get(`/sign-in/upstream?${query}`);
  const state = new URL(begun.location!).searchParams.get('state')!;
  const answer = await client.get(
    `/sign-in/upstream/callback?${new URLSearchParams({ state, code: 'forged' }).toString()}`,
  );
  assert.equal(answer.location, `/sign-in?${query}&done=upstream_refused`);
  assert.match((await client.get(answer.location!)).body, /did not let you in/);
});
