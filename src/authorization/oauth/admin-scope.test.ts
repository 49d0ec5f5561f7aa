/** The administrator role gives tokens no rights, unless the scope `admin` was requested, shown and chosen. */
import assert from 'node:assert/strict';
import {
  type Answer,
  type AuthorizationServer,
  authorize,
  CALLBACK,
  decide,
  postForm,
  readHidden,
  readRedirect,
  registerApplication,
  request,
  type SignedIn,
  signIn,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { createUser, setAdminStatement } from '../accounts/user-store.ts';
import { setAdministrator } from '../administration/manage-people.ts';
import { setIntrospectionStatement } from '../applications/application-store.ts';
import type { Scope } from '../applications/scope.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

let people = 0;

async function preparePerson({ server }: Bench, isAdmin = true): Promise<SignedIn> {
  const login = `root${++people}`;
  const profile = { login, name: 'Root', email: null, isAdmin, passwordHash: null };
  const user = await createUser(server.store, server.world, profile);
  return { user, cookie: await signIn(server, user) };
}

async function prepareClient({ server }: Bench) {
  const { clientId, clientSecret } = await registerApplication(server, {
    grantTypes: ['authorization_code', 'refresh_token', 'client_credentials', 'device_code'],
  });
  return { client_id: clientId, client_secret: clientSecret };
}

function ask(server: AuthorizationServer, { cookie }: SignedIn, clientId: string, scope: string): Promise<Answer> {
  return authorize(server, cookie, { client_id: clientId, redirect_uri: CALLBACK, response_type: 'code', scope });
}

/** Presses Allow with these boxes ticked. */
function choose(server: AuthorizationServer, { cookie }: SignedIn, page: string, scopes: readonly string[]) {
  const fields = new URLSearchParams({
    csrf_token: readHidden(page, 'csrf_token'),
    request: readHidden(page, 'request'),
    narrow: '1',
    decision: 'allow',
  });
  for (const scope of scopes) fields.append('scope', scope);
  const action = /<form method="post" action="([^"]+)" class="pair"/.exec(page)?.[1] ?? '';
  return postForm(server.url + action, fields, { cookie, origin: server.url });
}

async function exchange(server: AuthorizationServer, client: Readonly<Record<string, string>>, answer: Answer) {
  const code = readRedirect(answer).get('code') ?? '';
  return (await postForm(`${server.url}/oauth/token`, { grant_type: 'authorization_code', code, ...client })).json;
}

function tokenOf(bench: Bench, userId: string, scopes: readonly Scope[]) {
  const { store, world } = bench.server;
  return createPersonalToken(store, world, { userId, name: 'token', scopes, expiresAtMs: undefined });
}

const cases: Case[] = [
  [
    'an application of an administrator has an ordinary person’s rights without the scope',
    async (bench) => {
      const { server } = bench;
      const [root, client] = [await preparePerson(bench), await prepareClient(bench)];
      const page = await ask(server, root, client.client_id, 'all_user all_hook');
      assert.doesNotMatch(page.text, /value="admin"/);
      const allowed = await decide(server, root.cookie, { page: page.text, decision: 'allow' });
      const { access_token: token } = await exchange(server, client, allowed);
      const identity = await server.area.verifyToken(String(token));
      assert.deepEqual([identity?.userId, identity?.isAdmin], [root.user.id, false]);
    },
  ],
  [
    'the page shows the scope with an empty box, and Allow alone does not give it',
    async (bench) => {
      const { server } = bench;
      const [root, client] = [await preparePerson(bench), await prepareClient(bench)];
      const page = await ask(server, root, client.client_id, 'all_user admin');
      const box = /<input type="checkbox" name="scope" value="admin"[^>]*>/.exec(page.text)?.[0] ?? '';
      assert.match(box, /form="decide"/);
      assert.doesNotMatch(box, /checked/);
      assert.match(page.text, /Your rights as an administrator.*sensitive/s);
      for (const give of [
        () => choose(server, root, page.text, ['all_user']),
        () => decide(server, root.cookie, { page: page.text, decision: 'allow' }),
      ]) {
        const { scope, access_token: token } = await exchange(server, client, await give());
        assert.equal(scope, 'all_user');
        assert.equal((await server.area.verifyToken(String(token)))?.isAdmin, false);
      }
    },
  ],
  [
    'with the box ticked the token has the rights, as long as its person has the role',
    async (bench) => {
      const { server } = bench;
      const [root, client] = [await preparePerson(bench), await prepareClient(bench)];
      const page = await ask(server, root, client.client_id, 'admin');
      const { scope, access_token: token } = await exchange(
        server,
        client,
        await choose(server, root, page.text, ['admin']),
      );
      assert.equal(scope, 'admin');
      assert.equal((await server.area.verifyToken(String(token)))?.isAdmin, true);
      await server.store.writeAll([setAdminStatement(root.user.id, 0)]);
      assert.equal((await server.area.verifyToken(String(token)))?.isAdmin, false);
    },
  ],
  [
    'what a person gave before becoming an administrator has an ordinary person’s rights afterwards',
    async (bench) => {
      const { server } = bench;
      const [ada, client] = [await preparePerson(bench, false), await prepareClient(bench)];
      const page = await ask(server, ada, client.client_id, 'all_user admin');
      const allowed = await choose(server, ada, page.text, ['all_user', 'admin']);
      const tokens = await exchange(server, client, allowed);
      const personal = await tokenOf(bench, ada.user.id, ['all_user', 'all_hook']);
      await setAdministrator(server, COMMAND_LINE, { login: ada.user.login, isAdmin: true });
      for (const token of [String(tokens.access_token), personal.secret]) {
        const identity = await server.area.verifyToken(token);
        assert.deepEqual([identity?.userId, identity?.isAdmin], [ada.user.id, false]);
      }
      const more = {
        grant_type: 'refresh_token',
        refresh_token: String(tokens.refresh_token),
        scope: 'all_user admin',
      };
      const refreshed = await postForm(`${server.url}/oauth/token`, { ...more, ...client });
      assert.equal(refreshed.json.scope, 'all_user');
      const identity = await server.area.verifyToken(String(refreshed.json.access_token));
      assert.deepEqual([identity?.userId, identity?.isAdmin], [ada.user.id, false]);
    },
  ],
  [
    'what a person gave during an earlier time in the role does not come back with the role',
    async (bench) => {
      const { server } = bench;
      const [root, client, plain] = [
        await preparePerson(bench),
        await prepareClient(bench),
        await prepareClient(bench),
      ];
      await preparePerson(bench);
      const page = await ask(server, root, client.client_id, 'all_user admin');
      const tokens = await exchange(server, client, await choose(server, root, page.text, ['all_user', 'admin']));
      const other = await ask(server, root, plain.client_id, 'all_user');
      const allowed = await decide(server, root.cookie, { page: other.text, decision: 'allow' });
      const ordinary = String((await exchange(server, plain, allowed)).access_token);
      const personal = await tokenOf(bench, root.user.id, ['all_user', 'admin:people']);
      const parts = [];
      for (const scopes of [['admin'], ['models:read'], ['all_user']] as const)
        parts.push((await tokenOf(bench, root.user.id, scopes)).secret);
      const { login } = root.user;
      await setAdministrator(server, COMMAND_LINE, { login, isAdmin: false });
      assert.equal((await server.area.verifyToken(personal.secret))?.userId, root.user.id);
      await setAdministrator(server, COMMAND_LINE, { login, isAdmin: true });
      const living = [];
      for (const token of [String(tokens.access_token), ordinary, personal.secret, ...parts])
        living.push((await server.area.verifyToken(token)) !== undefined);
      assert.deepEqual(living, [false, true, false, false, false, true]);
      const again = await ask(server, root, client.client_id, 'all_user admin');
      assert.match(again.text, /value="admin"/, 'asked for again');
    },
  ],
  [
    'an ordinary person is not asked for it and cannot give it',
    async (bench) => {
      const { server } = bench;
      const [ada, client] = [await preparePerson(bench, false), await prepareClient(bench)];
      const page = await ask(server, ada, client.client_id, 'all_user admin');
      assert.doesNotMatch(page.text, /value="admin"/);
      const chosen = await choose(server, ada, page.text, ['all_user', 'admin']);
      assert.equal((await exchange(server, client, chosen)).scope, 'all_user');
      const alone = await ask(server, ada, client.client_id, 'admin');
      assert.equal(readRedirect(alone).get('error'), 'invalid_scope');
    },
  ],
  [
    'a device gets it only from an administrator who ticks the box',
    async (bench) => {
      const { server } = bench;
      const client = await prepareClient(bench);
      const scopeAfter = async (person: SignedIn, boxes: readonly string[]) => {
        const { json } = await postForm(`${server.url}/oauth/device`, { ...client, scope: 'all_user admin' });
        const { text } = await request(`${server.url}/device`, { headers: { cookie: person.cookie } });
        const typed = { csrf_token: readHidden(text, 'csrf_token'), user_code: String(json.user_code) };
        const asked = await postForm(`${server.url}/device`, typed, { cookie: person.cookie, origin: server.url });
        const headers = { cookie: person.cookie };
        const shown = await request(server.url + asked.headers.get('location'), { headers });
        await choose(server, person, shown.text, boxes);
        const poll = { grant_type: DEVICE_GRANT, device_code: String(json.device_code), ...client };
        return (await postForm(`${server.url}/oauth/token`, poll)).json.scope;
      };
      const [root, ada] = [await preparePerson(bench), await preparePerson(bench, false)];
      assert.equal(await scopeAfter(root, ['all_user']), 'all_user');
      assert.equal(await scopeAfter(root, ['all_user', 'admin']), 'all_user admin');
      assert.equal(await scopeAfter(ada, ['all_user', 'admin']), 'all_user');
    },
  ],
  [
    'an application that acts for itself does not get it',
    async (bench) => {
      const client = await prepareClient(bench);
      const fields = { grant_type: 'client_credentials', ...client };
      const post = (scope: string) => postForm(`${bench.server.url}/oauth/token`, { ...fields, scope });
      assert.equal((await post('all_hook admin')).json.scope, 'all_hook');
      assert.equal((await post('admin')).json.error, 'invalid_scope');
    },
  ],
  [
    'a personal token has it only when it was chosen, cannot make another that has it, and an ordinary person has none',
    async (bench) => {
      const { server } = bench;
      const [root, ada] = [await preparePerson(bench), await preparePerson(bench, false)];
      const plain = await tokenOf(bench, root.user.id, ['all_user', 'all_hook']);
      const admin = await tokenOf(bench, root.user.id, ['all_user', 'admin']);
      assert.equal((await server.area.verifyToken(plain.secret))?.isAdmin, false);
      assert.equal((await server.area.verifyToken(admin.secret))?.isAdmin, true);
      const make = (secret: string) =>
        request(`${server.url}/api/v5/user/access_tokens`, {
          method: 'POST',
          headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
          body: JSON.stringify({ name: 'more', scopes: ['admin'] }),
        });
      assert.equal((await make(plain.secret)).status, 403);
      assert.equal((await make(admin.secret)).status, 201);
      await assert.rejects(tokenOf(bench, ada.user.id, ['admin']), /is not an administrator/);
      const pageOf = async ({ cookie }: SignedIn) =>
        (await request(`${server.url}/account/tokens`, { headers: { cookie } })).text;
      assert.match(await pageOf(root), /value="admin"/);
      assert.doesNotMatch(await pageOf(ada), /value="admin"/);
    },
  ],
  [
    'only a personal token with it introspects the tokens of others',
    async (bench) => {
      const { server } = bench;
      const root = await preparePerson(bench);
      const plain = await tokenOf(bench, root.user.id, ['all_user']);
      const admin = await tokenOf(bench, root.user.id, ['admin']);
      const isSeen = async (bearer: string) => {
        const headers = { authorization: `Bearer ${bearer}` };
        return (await postForm(`${server.url}/oauth/introspect`, { token: plain.secret }, headers)).json.active;
      };
      assert.deepEqual([await isSeen(plain.secret), await isSeen(admin.secret)], [false, true]);
    },
  ],
  [
    'introspection names it, and its parts, only while the person has the role',
    async (bench) => {
      const { server } = bench;
      const [root, client] = [await preparePerson(bench), await prepareClient(bench)];
      const page = await ask(server, root, client.client_id, 'all_user admin');
      const tokens = await exchange(server, client, await choose(server, root, page.text, ['all_user', 'admin']));
      const personal = (await tokenOf(bench, root.user.id, ['all_user', 'admin:people'])).secret;
      await server.store.writeAll([setIntrospectionStatement(client.client_id, 1)]);
      const readScopes = async () => {
        const scopes = [];
        for (const token of [String(tokens.access_token), String(tokens.refresh_token), personal])
          scopes.push((await postForm(`${server.url}/oauth/introspect`, { token, ...client })).json.scope);
        return scopes;
      };
      assert.deepEqual(await readScopes(), ['all_user admin', 'all_user admin', 'all_user admin:people']);
      await server.store.writeAll([setAdminStatement(root.user.id, 0)]);
      assert.deepEqual(await readScopes(), ['all_user', 'all_user', 'all_user']);
    },
  ],
];

checkConformance('the scope admin', cases);
