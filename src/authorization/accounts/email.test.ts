/** Relying parties match people by email address: an address that applications receive must be verified, and belong to one person. */
import assert from 'node:assert/strict';
import {
  createPerson,
  obtainTokens,
  registerApplication,
  request,
  type SignedIn,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { createUser } from './user-store.ts';

async function readEmails({ server }: Bench, person: SignedIn) {
  const tokens = await obtainTokens(server, person, await registerApplication(server), 'openid all_user');
  const ask = async (path: string) =>
    (await request(server.url + path, { headers: { authorization: `Bearer ${tokens.access_token}` } })).json;
  const [user, info] = [await ask('/api/v5/user'), await ask('/oauth/userinfo')];
  return [user.email, user.email_verified, info.email, info.email_verified];
}

async function typeEmail({ server }: Bench, { user, cookie }: SignedIn, email: string): Promise<string> {
  const [name = '', value = ''] = cookie.split('=');
  const client = createFormClient(server.url, new Map([[name, value]]));
  const answer = await client.submit('/account', '/account', { name: user.name, email });
  assert.equal(answer.location, '/account?done=saved');
  return (await client.get('/account')).body;
}

async function verifyByCommand({ context }: Bench, login: string, email: string) {
  const { dataDir, databaseUrl } = context.place;
  const env = { TRIVET_DATA_DIR: dataDir, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }) };
  return runTrivet(['user', 'email', login, email], { env });
}

const cases: Case[] = [
  [
    'no application receives an address that a person typed, until an administrator verifies it',
    async (bench) => {
      const ada = await createPerson(bench.server);
      const given = ada.user.email ?? '';
      assert.deepEqual(await readEmails(bench, ada), [given, true, given, true]);
      assert.match(await typeEmail(bench, ada, 'boss@example.com'), /Not verified/);
      assert.deepEqual(await readEmails(bench, ada), [null, false, undefined, false]);
      assert.equal((await verifyByCommand(bench, ada.user.login, 'boss@example.com')).code, 0);
      assert.deepEqual(await readEmails(bench, ada), ['boss@example.com', true, 'boss@example.com', true]);
      assert.doesNotMatch(await typeEmail(bench, ada, 'boss@example.com'), /Not verified/, 'saved again as it was');
      assert.deepEqual(await readEmails(bench, ada), ['boss@example.com', true, 'boss@example.com', true]);
    },
  ],
  [
    'of two people one has an address verified, in whatever case it is written',
    async (bench) => {
      const { store, world } = bench.server;
      const [ada, eve] = [await createPerson(bench.server), await createPerson(bench.server)];
      const address = ada.user.email ?? '';
      await typeEmail(bench, eve, address.toUpperCase());
      assert.deepEqual(await readEmails(bench, eve), [null, false, undefined, false]);
      const run = await verifyByCommand(bench, eve.user.login, address.toUpperCase());
      assert.match(run.stderr, /is the verified address of another account/);
      const profile = { login: 'mallory', name: 'M', email: address, isAdmin: false, passwordHash: null };
      await assert.rejects(createUser(store, world, { ...profile, isEmailVerified: true }), { code: 'conflict' });
      assert.deepEqual(await readEmails(bench, ada), [address, true, address, true]);
    },
  ],
];

checkConformance('email addresses', cases);
