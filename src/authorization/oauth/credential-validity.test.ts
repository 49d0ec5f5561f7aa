/**
 * What ends with what: every event of a person's account against every kind of credential, on the real pages, endpoints
 * and commands. One person gets one credential of each kind, then the event happens, then each is tried.
 */
import assert from 'node:assert/strict';
import {
  type AuthorizationServer,
  authorize,
  CALLBACK,
  callApi,
  decide,
  type Fields,
  obtainCode,
  obtainTokens,
  postForm,
  readHidden,
  readRedirect,
  refresh,
  registerApplication,
  request,
  type SignedIn,
  signIn,
} from '../../../test/support/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../test/support/conformance.ts';
import { createFormClient, type FormClient } from '../../../test/support/form-client.ts';
import { runTrivet } from '../../../test/support/run-trivet.ts';
import { setPasswordStatement } from '../accounts/password-store.ts';
import { createSession } from '../accounts/session-store.ts';
import { createUser, findUserById, type User } from '../accounts/user-store.ts';
import { setEmail } from '../administration/manage-people.ts';
import { deleteApplication } from '../applications/application.ts';
import { findApplication } from '../applications/application-store.ts';
import { createPasswordLink } from '../password-links/password-link.ts';
import { hashPassword } from '../sign-in/password.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const SCOPE = 'all_user all_hook';
const OLD_PASSWORD = 'correct horse battery';
const NEW_PASSWORD = 'a new long password';

const KINDS = [
  'code',
  'waitingDevice',
  'approvedDevice',
  'access',
  'refresh',
  'personal',
  'session',
  'passwordLink',
] as const;
type Kind = (typeof KINDS)[number];

interface Scene {
  readonly bench: Bench;
  readonly person: SignedIn;
  /** Another browser of the person, from which the pages are used. */
  readonly browser: FormClient;
  readonly clientId: string;
  /** Tries the credential once, and says whether it was taken. */
  readonly attempts: Readonly<Record<Kind, () => Promise<boolean>>>;
}

let people = 0;

async function prepareScene(bench: Bench): Promise<Scene> {
  const { server } = bench;
  const { store, world } = server;
  const login = `matrix${++people}`;
  const passwordHash = await hashPassword(OLD_PASSWORD);
  const profile = { login, name: 'Ada', email: null, isAdmin: false, passwordHash };
  const user = await createUser(store, world, profile);
  const person = { user, cookie: await signIn(server, user) };
  const application = await registerApplication(server, {
    grantTypes: ['authorization_code', 'refresh_token', 'device_code'],
  });
  const { clientId, clientSecret } = application;
  const client = { client_id: clientId, client_secret: clientSecret };
  const tokens = await obtainTokens(server, person, application, SCOPE);
  const spare = await obtainTokens(server, person, application, SCOPE);
  const approved = await startDevice(server, client);
  await approveDevice(server, person, approved.userCode);
  const waiting = await startDevice(server, client);
  const personal = { userId: user.id, name: 'ci', scopes: ['all_user'], expiresAtMs: undefined } as const;
  const { secret } = await createPersonalToken(store, world, personal);
  const link = await orderLink(server, user);
  const code = await obtainCode(server, person, { client_id: clientId, scope: SCOPE });
  const exchange = (fields: Fields) => postForm(`${server.url}/oauth/token`, { ...fields, ...client });
  return {
    bench,
    person,
    browser: await openBrowser(server, user.id),
    clientId,
    attempts: {
      code: async () => (await exchange({ grant_type: 'authorization_code', code })).status === 200,
      waitingDevice: async () => {
        const { json } = await exchange({ grant_type: DEVICE_GRANT, device_code: waiting.deviceCode });
        return json.error === 'authorization_pending';
      },
      approvedDevice: async () =>
        (await exchange({ grant_type: DEVICE_GRANT, device_code: approved.deviceCode })).status === 200,
      access: async () => (await callApi(server, tokens.access_token)) === 200,
      refresh: async () => (await refresh(server, spare.refresh_token)).status === 200,
      personal: async () => (await callApi(server, secret)) === 200,
      session: async () =>
        (await request(`${server.url}/account`, { headers: { cookie: person.cookie } })).status === 200,
      passwordLink: async () => (await request(link)).status === 200,
    },
  };
}

/** As an administrator orders it. */
async function orderLink({ url, store, world, cipher }: AuthorizationServer, user: User): Promise<string> {
  const link = createPasswordLink({ store, world, cipher, baseUrl: url }, user, 'reset');
  await store.writeAll([link.statement]);
  return link.url;
}

async function startDevice(server: AuthorizationServer, client: Fields) {
  const { json } = await postForm(`${server.url}/oauth/device`, { ...client, scope: SCOPE });
  return { deviceCode: String(json.device_code), userCode: String(json.user_code) };
}

async function approveDevice(server: AuthorizationServer, { cookie }: SignedIn, userCode: string): Promise<void> {
  const page = await request(`${server.url}/device`, { headers: { cookie } });
  const fields = { csrf_token: readHidden(page.text, 'csrf_token'), user_code: userCode };
  const typed = await postForm(`${server.url}/device`, fields, { cookie, origin: server.url });
  const shown = await request(server.url + typed.headers.get('location'), { headers: { cookie } });
  const decided = await decide(server, cookie, { page: shown.text, decision: 'allow', path: '/device' });
  assert.equal(decided.headers.get('location'), '/device?done=approved');
}

async function openBrowser({ url, store, world }: AuthorizationServer, userId: string): Promise<FormClient> {
  const user = await findUserById(store, userId);
  assert.ok(user);
  const { token } = await createSession(store, world, { user, method: 'password', address: '-', userAgent: '' });
  return createFormClient(url, new Map([['trivet_session', token]]));
}

async function changePassword({ browser }: Scene, more: Fields = {}): Promise<void> {
  const path = '/account/security';
  const fields = { current: OLD_PASSWORD, password: NEW_PASSWORD, ...more };
  assert.equal((await browser.submit(path, `${path}/password`, fields)).location, `${path}?done=changed`);
  assert.equal((await browser.get('/account')).status, 200, 'the browser in which it was changed stays signed in');
}

async function runCommand({ bench, person }: Scene, argv: readonly string[], input = ''): Promise<void> {
  const { dataDir, databaseUrl } = bench.context.place;
  const env = { TRIVET_DATA_DIR: dataDir, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }) };
  const run = await runTrivet([...argv.slice(0, 2), person.user.login, ...argv.slice(2)], { env, input });
  assert.equal(run.code, 0, run.stderr);
}

async function revokeOnPage({ browser, clientId }: Scene): Promise<void> {
  const page = '/account/authorizations';
  const answer = await browser.submit(page, `${page}/revoke`, { client_id: clientId });
  assert.equal(answer.location, `${page}?done=revoked`);
}

/** Asks for all again, and leaves out what was allowed before. */
async function keepLess({ bench, person, clientId }: Scene): Promise<void> {
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

async function switchByAdministrator({ bench, person }: Scene): Promise<void> {
  const { store, world } = bench.server;
  const profile = { login: `admin${++people}`, name: 'Root', email: null, isAdmin: true, passwordHash: null };
  const administrator = await openBrowser(bench.server, (await createUser(store, world, profile)).id);
  const path = `/admin/users/${person.user.login}/disable`;
  const fields = { csrf_token: readHidden((await administrator.get(path)).body, 'csrf_token') };
  assert.equal((await administrator.post(path, fields)).status, 303);
}

async function deleteByOwner({ bench, clientId }: Scene): Promise<void> {
  const { store, world } = bench.server;
  const application = await findApplication(store, clientId);
  assert.ok(application);
  await deleteApplication(store, world, { application, actor: { userId: undefined } });
}

const OF_APPLICATIONS: readonly Kind[] = ['code', 'approvedDevice', 'access', 'refresh'];

/** What is refused after each event; everything else goes on. */
const events: [event: string, end: (scene: Scene) => Promise<void>, ended: readonly Kind[]][] = [
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
    (scene) => runCommand(scene, ['user', 'reset-second-step']),
    [...OF_APPLICATIONS, 'session', 'passwordLink'],
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
    const scene = await prepareScene(bench);
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
      const { person } = await prepareScene(bench);
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
      const scene = await prepareScene(bench);
      await keepLess(scene);
      const fields = { client_id: scene.clientId, redirect_uri: CALLBACK, response_type: 'code' };
      const { cookie } = scene.person;
      assert.equal((await authorize(server, cookie, { ...fields, scope: 'all_user' })).status, 302);
      const again = await authorize(server, cookie, { ...fields, scope: SCOPE });
      assert.deepEqual([again.status, readRedirect(again).get('code')], [200, null]);
      assert.match(again.text, /all_hook/);
    },
  ],
];

checkConformance('consents and sessions', others);
