import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { addUser, openAs } from '../../../test/support/pages/page-service.ts';
import {
  beginLink,
  linkAccount,
  startWithProvider,
  visitProvider,
} from '../../../test/support/pages/upstream-provider.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { findUserByLogin } from '../accounts/user-store.ts';

const SECURITY = '/account/security';
/** Where the account of the provider leads that is linked to no one. */
const UNKNOWN = '/sign-in?done=upstream_unknown';

test('a person without an address gets that of the provider with the link, and the audit log has it', async (t) => {
  const service = await startWithProvider(t, 'closed');
  const { store } = service;
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const { name } = (await findUserByLogin(store, 'ada'))!;
  await client.submit('/account', '/account', { name, email: '' });
  // The newest event comes first, and events of the same moment in any order.
  service.world.moveMs(1);
  await linkAccount(service, client, 'ada');
  const ada = await findUserByLogin(store, 'ada');
  assert.deepEqual([ada?.email, ada?.isEmailVerified], ['ada@company.example', true]);
  const [changed] = (await listEvents(store, { limit: 9 })).filter(({ kind }) => kind === 'user_changed');
  const issuer = service.signIn.context.upstream?.config.issuer;
  assert.deepEqual([changed?.address, changed?.details], ['127.0.0.1', { what: 'email', by: issuer }]);
});

test('a signed-in person links the account, signs in with it, and unlinks it', async (t) => {
  const service = await startWithProvider(t, 'closed');
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  assert.equal((await linkAccount(service, client, 'ada.k')).location, `${SECURITY}?done=linked`);
  assert.match((await client.get(SECURITY)).body, /Linked with ada\.k@company\.example/);

  const other = createFormClient(service.url);
  assert.equal((await visitProvider(service, other, 'ada.k')).answer.location, '/');
  assert.match((await other.get('/account')).body, /<dd>ada<\/dd>/);
  assert.equal((await client.submit(SECURITY, `${SECURITY}/upstream/unlink`, {})).status, 303);
  assert.equal((await visitProvider(service, createFormClient(service.url), 'ada.k')).answer.location, UNKNOWN);
});

test('a link that is refused is no refused sign-in', async (t) => {
  const service = await startWithProvider(t, 'closed');
  await addUser(service, 'ada');
  await addUser(service, 'grace');
  await linkAccount(service, await openAs(service, 'grace'), 'shared');
  const refused = await linkAccount(service, await openAs(service, 'ada'), 'shared');
  assert.equal(refused.status, 409, 'the account is linked with another person');
  const kinds = (await listEvents(service.store, { limit: 9 })).map(({ kind }) => kind);
  assert.deepEqual(kinds.sort(), ['sign_in', 'sign_in', 'upstream_linked']);
});

test('a person who cancels a link at the provider is led back to the page with the link', async (t) => {
  const service = await startWithProvider(t, 'closed');
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const { origin, searchParams } = new URL(await beginLink(client));
  const answer = { error: 'access_denied', state: searchParams.get('state') ?? '', iss: origin };
  const back = await client.get(`/sign-in/upstream/callback?${new URLSearchParams(answer).toString()}`);
  assert.equal(back.location, `${SECURITY}?done=not_linked`);
  assert.match((await client.get(back.location!)).body, /The account is not linked\./);
});
