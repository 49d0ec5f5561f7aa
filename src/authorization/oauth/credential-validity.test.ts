/**
 * Which events end which credentials: every event of a person's account with every kind of credential, on the real pages,
 * endpoints and commands. One person gets one credential of each kind, then the event happens, then each credential is tried.
 */
import assert from 'node:assert/strict';
import {
  authorize,
  CALLBACK,
  callApi,
  createPerson,
  type Fields,
  obtainCode,
  obtainTokens,
  postForm,
  readHidden,
  readRedirect,
  registerApplication,
  request,
  signIn,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import {
  type CredentialScene,
  KINDS,
  type Kind,
  OLD_PASSWORD,
  openBrowser,
  prepareCredentials,
  SCOPE,
} from '../../../test/support/authorization/credential-scene.ts';
import { giveSecondStep } from '../../../test/support/authorization/second-step.ts';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { setPasswordStatement } from '../accounts/password-store.ts';
import { createUser, disableUserStatement, enableUserStatement } from '../accounts/user-store.ts';
import { setEmail } from '../administration/manage-people.ts';
import { deleteApplication } from '../applications/application.ts';
import { findApplication } from '../applications/application-store.ts';

const NEW_PASSWORD = 'a new long password';
let administrators = 0;

async function changePassword({ browser }: CredentialScene, more: Fields = {}): Promise<void> {
  const path = '/account/security';
  const fields = { current: OLD_PASSWORD, password: NEW_PASSWORD, ...more };
  assert.equal((await browser.submit(path, `${path}/password`, fields)).location, `${path}?done=changed`);
  assert.equal((await browser.get('/account')).status, 200, 'the browser in which it was changed stays signed in');
}

async function runCommand({ bench, person }: CredentialScene, argv: readonly string[], input = ''): Promise<void> {
  const { dataDir, databaseUrl } = bench.context.place;
  const env = { TRIVET_DATA_DIR: dataDir, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }) };
  const run = await runTrivet([...argv.slice(0, 2), person.user.login, ...argv.slice(2)], { env, input });
  assert.equal(run.code, 0, run.stderr);
}

async function revokeOnPage({ browser, clientId }: CredentialScene): Promise<void> {
  const page = '/account/authorizations';
  const answer = await browser.submit(page, `${page}/revoke`, { client_id: clientId });
  assert.equal(answer.location, `${page}?done=revoked`);
}

/** Requests all scopes again, and leaves out one that was allowed before. */
async function keepLess({ bench, person, clientId }: CredentialScene): Promise<void> {
  const { server } = bench;
  const fields = {
    client_id: clientId,
    redirect_uri: CALLBACK,
    response_type: 'code',
    scope: SCOPE,
    prompt: 'consent',
  };
  const { text } = await authorize(server, person.cookie, fields);
  const answer = await postForm(
    `${server.url}/oauth/authorize`,
    {
      csrf_token: readHidden(text, 'csrf_token'),
      request: readHidden(text, 'request'),
      narrow: '1',
      scope: 'all_user',
      decision: 'allow',
    },
    { cookie: person.cookie, origin: server.url },
  );
  assert.ok(readRedirect(answer).get('code'));
}

async function switchByAdministrator({ bench, person }: CredentialScene): Promise<void> {
  const { store, world } = bench.server;
  const profile = { login: `admin${++administrators}`, name: 'Root', email: null, isAdmin: true, passwordHash: null };
  const administrator = await openBrowser(bench.server, (await createUser(store, world, profile)).id);
  const path = `/admin/users/${person.user.login}/disable`;
  const fields = { csrf_token: readHidden((await administrator.get(path)).body, 'csrf_token') };
  assert.equal((await administrator.post(path, fields)).status, 303);
}

async function deleteByOwner({ bench, clientId }: CredentialScene): Promise<void> {
  const { store, world } = bench.server;
  const application = await findApplication(store, clientId);
  assert.ok(application);
  await deleteApplication(store, world, { application, actor: { userId: undefined } });
}

const OF_APPLICATIONS: readonly Kind[] = ['code', 'approvedDevice', 'access', 'refresh'];

/** The credentials that are refused after each event; all others stay valid. */
const events: [event: string, end: (scene: CredentialScene) => Promise<void>, ended: readonly Kind[]][] = [
  ['nothing', async () => {}, []],
  [
    'the person changes the password',
    (scene) => changePassword(scene),
    [...OF_APPLICATIONS, 'session', 'passwordLink'],
  ],
  [
    'the person changes the password and deletes personal tokens',
    (scene) => changePassword(scene, { revoke: '1' }),
    [...OF_APPLICATIONS, 'personal', 'session', 'passwordLink'],
  ],
  [
    'the command line sets the password',
    (scene) => runCommand(scene, ['user', 'password', '--password-stdin'], NEW_PASSWORD),
    [...OF_APPLICATIONS, 'session', 'passwordLink'],
  ],
  [
    'the command line sets the password and deletes personal tokens',
    (scene) => runCommand(scene, ['user', 'password', '--password-stdin', '--delete-tokens'], NEW_PASSWORD),
    [...OF_APPLICATIONS, 'personal', 'session', 'passwordLink'],
  ],
  [
    'the command line resets the second step',
    async (scene) => {
      await giveSecondStep(scene.bench.server.store, scene.person.user.login);
      await runCommand(scene, ['user', 'reset-second-step']);
    },
    [...OF_APPLICATIONS, 'session', 'passwordLink'],
  ],
  [
    'the person turns off the second step',
    async ({ bench, person, browser }) => {
      await giveSecondStep(bench.server.store, person.user.login);
      const path = '/account/security';
      const stopped = await browser.submit(path, `${path}/totp/stop`, { totp_password: OLD_PASSWORD });
      assert.equal(stopped.location, `${path}?done=totp_stopped`);
    },
    [],
  ],
  [
    'an administrator disables the person',
    switchByAdministrator,
    [...OF_APPLICATIONS, 'personal', 'session', 'passwordLink'],
  ],
  [
    'the person is disabled and enabled again',
    async (scene) => {
      await runCommand(scene, ['user', 'disable']);
      await runCommand(scene, ['user', 'enable']);
    },
    ['session'],
  ],
  ['the person becomes an administrator', (scene) => runCommand(scene, ['user', 'admin']), ['passwordLink']],
  [
    'the person becomes an administrator, and a token without all rights set the address',
    async (scene) => {
      const { person, bench } = scene;
      const helper = { userId: person.user.id, login: 'helper', isAdmin: false };
      await setEmail(bench.server, helper, { login: person.user.login, email: `${person.user.login}@example.org` });
      await runCommand(scene, ['user', 'admin']);
    },
    [...OF_APPLICATIONS, 'personal', 'session', 'passwordLink'],
  ],
  [
    'an administrator sets another address',
    ({ person, bench }) =>
      setEmail(bench.server, COMMAND_LINE, { login: person.user.login, email: `${person.user.login}@example.net` }),
    [],
  ],
  ['the person takes the consent back', revokeOnPage, OF_APPLICATIONS],
  [
    'the person takes the consent back and gives it again',
    async (scene) => {
      await revokeOnPage(scene);
      await obtainCode(scene.bench.server, scene.person, { client_id: scene.clientId, scope: SCOPE });
    },
    OF_APPLICATIONS,
  ],
  ['the person allows less than before', keepLess, OF_APPLICATIONS],
  ['the application is deleted', deleteByOwner, [...OF_APPLICATIONS, 'waitingDevice']],
];

const cases: Case[] = events.map(([event, end, ended]) => [
  event,
  async (bench) => {
    const scene = await prepareCredentials(bench);
    await end(scene);
    const taken = new Map<Kind, boolean>();
    for (const kind of KINDS) taken.set(kind, await scene.attempts[kind]());
    const expected = new Map(KINDS.map((kind) => [kind, !ended.includes(kind)]));
    assert.deepEqual(taken, expected);
  },
]);

checkConformance('what ends a credential', cases);

const others: Case[] = [
  [
    'a sign-in that checked the old password while a new one was set opens nothing',
    async (bench) => {
      const { person } = await prepareCredentials(bench);
      const { server } = bench;
      await server.store.writeAll([setPasswordStatement(person.user.id, 'hash', server.world.nowMs())]);
      const cookie = await signIn(server, person.user);
      assert.equal((await request(`${server.url}/account`, { headers: { cookie } })).status, 303);
    },
  ],
  [
    'a person who left out a scope that was allowed before is asked for it again, and not for what was kept',
    async (bench) => {
      const { server } = bench;
      const scene = await prepareCredentials(bench);
      await keepLess(scene);
      const fields = { client_id: scene.clientId, redirect_uri: CALLBACK, response_type: 'code' };
      const { cookie } = scene.person;
      assert.equal((await authorize(server, cookie, { ...fields, scope: 'all_user' })).status, 302);
      const again = await authorize(server, cookie, { ...fields, scope: SCOPE });
      assert.deepEqual([again.status, readRedirect(again).get('code')], [200, null]);
      assert.match(again.text, /all_hook/);
    },
  ],
  [
    'what an application got for itself stops while its owner is disabled, and others go on with it',
    async (bench) => {
      const { server } = bench;
      const [owner, other] = [await createPerson(server), await createPerson(server)];
      const grantTypes = ['authorization_code', 'client_credentials'] as const;
      const application = await registerApplication(server, { grantTypes }, owner.user.id);
      const client = { client_id: application.clientId, client_secret: application.clientSecret };
      const order = () =>
        postForm(`${server.url}/oauth/token`, { grant_type: 'client_credentials', scope: 'predict', ...client });
      const { access_token: own } = (await order()).json;
      const tokens = await obtainTokens(server, other, application);
      const isTaken = async () => {
        const asked = await postForm(`${server.url}/oauth/introspect`, { token: String(own), ...client });
        const verified = await server.area.verifyToken(String(own));
        return [asked.json.active, verified !== undefined, (await order()).json.error];
      };
      assert.deepEqual(await isTaken(), [true, true, undefined]);
      await server.store.writeAll([disableUserStatement(owner.user.id, server.world.nowMs())]);
      assert.deepEqual(await isTaken(), [false, false, 'unauthorized_client']);
      assert.equal(await callApi(server, tokens.access_token), 200);
      await server.store.writeAll([enableUserStatement(owner.user.id)]);
      assert.deepEqual(await isTaken(), [true, true, undefined]);
    },
  ],
];

checkConformance('consents and sessions', others);
