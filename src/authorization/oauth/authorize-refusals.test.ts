/** `/oauth/authorize`: which requests it refuses, who gets the refusal, and what it keeps across the sign-in. */
import assert from 'node:assert/strict';
import {
  assertRedirectedError,
  assertShown,
  prepareRequest,
} from '../../../test/support/authorization/authorization-requests.ts';
import {
  type Answer,
  type AuthorizationServer,
  authorize,
  createPerson,
  decide,
  type Fields,
  postForm,
  postPageForm,
  readRedirect,
  registerApplication,
  request,
  signIn,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { createUser } from '../accounts/user-store.ts';
import { setAdministrator } from '../administration/manage-people.ts';

const cases: Case[] = [
  [
    'a redirect address that is not registered is shown beside the rule, so that a developer sees the difference',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields } = await prepareRequest(bench);
      const answer = await authorize(server, cookie, { ...fields, redirect_uri: 'https://app.example/other?a=<b>' });
      assert.equal(answer.status, 400);
      assert.match(answer.text, /letter for letter, got &quot;https:\/\/app\.example\/other\?a=&lt;b&gt;&quot;/);
      const text = await authorize(server, cookie, {
        ...fields,
        redirect_uri: 'Your account is locked, call 555-0100',
      });
      assert.equal(text.status, 400);
      assert.match(text.text, /is not registered for .*, and is not an absolute URI/);
      assert.doesNotMatch(text.text, /555-0100/);
    },
  ],
  [
    'RFC 9700 §4.11.2 a refused request of a stranger is redirected only after the stranger has signed in',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields } = await prepareRequest(bench);
      const refused: [changes: Fields, error: string][] = [
        [{ scope: 'nope' }, 'invalid_scope'],
        [{ response_type: 'token' }, 'unsupported_response_type'],
        [{ code_challenge_method: 'plain' }, 'invalid_request'],
      ];
      for (const [changes, error] of refused) {
        const asked = await authorize(server, '', { ...fields, ...changes });
        const answer = await request(server.url + readReturnTo(asked), { headers: { cookie } });
        assertRedirectedError(bench, answer, error);
      }
    },
  ],
  [
    'a refusal names the parameter, and what is allowed',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields } = await prepareRequest(bench);
      const refused: [changes: Fields, more: string, description: RegExp][] = [
        [{ scope: 'nope' }, '', /scopes_supported of the metadata/],
        [
          { code_challenge: 'abc', code_challenge_method: 'S256' },
          '',
          /code_challenge must be .* 43 characters of base64url/,
        ],
        [{ nonce: 'a\nb' }, '', /^The nonce has control characters or more than 1024 characters$/],
        [{ nonce: 'n'.repeat(1025) }, '', /^The nonce has control characters or more than 1024 characters$/],
        [{ prompt: 'none login' }, '', /^prompt=none cannot be combined with other values$/],
        [{ scope: 'admin' }, '', /^The user may not grant any of the requested scopes$/],
        [{}, '&response_type=code', /The parameter response_type was sent/],
      ];
      for (const [changes, more, description] of refused) {
        const query = new URLSearchParams({ ...fields, ...changes } as Record<string, string>).toString();
        const answer = await request(`${server.url}/oauth/authorize?${query}${more}`, { headers: { cookie } });
        assert.match(readRedirect(answer).get('error_description') ?? '', description);
      }
      const grant = await postForm(`${server.url}/oauth/token`, { grant_type: 'password' });
      assert.match(
        String(grant.json.error_description),
        /^grant_type must be one of authorization_code, refresh_token, /,
      );
      const twice = await postForm(`${server.url}/oauth/token?grant_type=refresh_token`, {
        grant_type: 'refresh_token',
      });
      assert.equal(twice.json.error_description, 'The parameter grant_type was sent more than once');
    },
  ],
  [
    'A13 a repeated parameter is still repeated after signing in',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields } = await prepareRequest(bench);
      const query = `${new URLSearchParams(fields).toString()}&scope=all_user&scope=all_hook`;
      const asked = await request(`${server.url}/oauth/authorize?${query}`);
      const answer = await request(server.url + readReturnTo(asked), { headers: { cookie } });
      assertRedirectedError(bench, answer, 'invalid_request');
    },
  ],
  [
    'A23 prompt=none without a session is redirected for applications of the service and of administrators alone (RFC 9700 §4.11.2)',
    async (bench) => {
      const { server } = bench;
      const { fields } = await prepareRequest(bench);
      const administrator = await createAdministrator(server);
      const person = await createPerson(server);
      const none = { ...fields, prompt: 'none' };
      const ofAdministrator = await registerApplication(server, {}, administrator.id);
      const ofPerson = await registerApplication(server, { name: 'Stranger <b>' }, person.user.id);
      assertRedirectedError(bench, await authorize(server, '', none), 'login_required');
      const trusted = await authorize(server, '', { ...none, client_id: ofAdministrator.clientId });
      assertRedirectedError(bench, trusted, 'login_required');
      for (const changes of [{}, { scope: 'nope' }]) {
        const shown = await authorize(server, '', { ...none, ...changes, client_id: ofPerson.clientId });
        assertShown(shown);
        assert.match(shown.text, /Stranger &lt;b&gt;/);
        assert.match(shown.text, /href="https:\/\/client\.example\/callback\?error=\w+&amp;/);
        assert.doesNotMatch(shown.text, /http-equiv/);
      }
      const signedIn = await authorize(server, person.cookie, { ...none, client_id: ofPerson.clientId });
      assertRedirectedError(bench, signedIn, 'consent_required');
    },
  ],
  [
    'A23 prompt=none without a session is not redirected for an application from before its owner became an administrator',
    async (bench) => {
      const { server } = bench;
      const { fields } = await prepareRequest(bench);
      const { user } = await createPerson(server);
      const before = await registerApplication(server, {}, user.id);
      server.advance(10);
      await setAdministrator(server, COMMAND_LINE, { login: user.login, isAdmin: true });
      server.advance(10);
      const after = await registerApplication(server, {}, user.id);
      const none = { ...fields, prompt: 'none' };
      assertShown(await authorize(server, '', { ...none, client_id: before.clientId }));
      const trusted = await authorize(server, '', { ...none, client_id: after.clientId });
      assertRedirectedError(bench, trusted, 'login_required');
    },
  ],
  [
    'A13 what is not read may be repeated, such as resource, at both endpoints (RFC 8707 §2)',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, clientId, clientSecret } = await prepareRequest(bench);
      const resources = 'resource=https%3A%2F%2Fa.example&resource=https%3A%2F%2Fb.example&%22%5C=1&%22%5C=2';
      const query = `${new URLSearchParams(fields).toString()}&${resources}`;
      const page = await request(`${server.url}/oauth/authorize?${query}`, { headers: { cookie } });
      assert.equal(page.status, 200);
      const code = readRedirect(await decide(server, cookie, { page: page.text, decision: 'allow' })).get('code') ?? '';
      const exchange = { grant_type: 'authorization_code', code, client_id: clientId, client_secret: clientSecret };
      assert.equal((await postForm(`${server.url}/oauth/token?${resources}`, exchange)).status, 200);
    },
  ],
  [
    'A02 a state that sign-in and consent carry comes back; a longer one is refused at once, signed in or not',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, person } = await prepareRequest(bench);
      for (const state of ['='.repeat(2000), 's'.repeat(8000), 'ü'.repeat(1000)]) {
        const asked = await authorize(server, '', { ...fields, state });
        const fresh = await signIn(server, person.user);
        const page = await request(server.url + readReturnTo(asked), { headers: { cookie: fresh } });
        const answer = await decide(server, fresh, { page: page.text, decision: 'deny' });
        assert.equal(readRedirect(answer).get('state'), state);
      }
      for (const state of ['='.repeat(3000), 's'.repeat(12_000), '\u0001'.repeat(1500)]) {
        const shown = await authorize(server, '', { ...fields, state });
        assertShown(shown);
        assert.match(shown.text, /its state must be shorter/);
        const redirected = readRedirect(await authorize(server, cookie, { ...fields, state }));
        assert.deepEqual([redirected.get('error'), redirected.get('state')], ['invalid_request', state]);
      }
    },
  ],
  [
    'A22 a request by POST that is too long is refused, not echoed into the address',
    async (bench) => {
      const { fields } = await prepareRequest(bench);
      const post = (length: number) =>
        postPageForm(bench.server, '/oauth/authorize', { fields: { ...fields, more: 'x'.repeat(length) } });
      assertShown(await post(13_000));
      assertShown(await post(1_000_000), 413);
      const headers = { origin: 'https://client.example' };
      const long = await postForm(
        `${bench.server.url}/oauth/authorize`,
        { ...fields, more: 'x'.repeat(13_000) },
        headers,
      );
      assert.deepEqual([long.status, long.headers.get('location')], [303, '/refused?refused=status-400']);
    },
  ],
  [
    'A11 scope names of other code hosts alone stand for scopes of ours, which the page shows and the answer returns',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields, clientId, clientSecret } = await prepareRequest(bench);
      const page = await authorize(server, cookie, { ...fields, scope: 'user_info projects gists' });
      for (const scope of ['all_user', 'all_projects']) assert.match(page.text, new RegExp(`<code>${scope}</code>`));
      const code = readRedirect(await decide(server, cookie, { page: page.text, decision: 'allow' })).get('code') ?? '';
      const client = { client_id: clientId, client_secret: clientSecret };
      const tokenUrl = `${server.url}/oauth/token`;
      const { json } = await postForm(tokenUrl, { grant_type: 'authorization_code', code, ...client });
      assert.equal(json.scope, 'all_user all_projects');
      const refresh = { grant_type: 'refresh_token', refresh_token: String(json.refresh_token) };
      assert.equal((await postForm(tokenUrl, { ...refresh, scope: 'read_user' })).json.scope, 'all_user');
    },
  ],
];

/** The path to which the sign-in page returns; the response must redirect to that page. */
function readReturnTo(answer: Answer): string {
  assert.equal(answer.status, 303, answer.text);
  const location = new URL(answer.headers.get('location') ?? '', 'http://self.invalid');
  assert.deepEqual([location.host, location.pathname], ['self.invalid', '/sign-in']);
  return location.searchParams.get('return_to') ?? '';
}

function createAdministrator({ store, world }: AuthorizationServer) {
  const form = { login: `root${world.uuid().slice(0, 8)}`, name: 'Root', email: null, passwordHash: null };
  return createUser(store, world, { ...form, isAdmin: true });
}

checkConformance('refusals of the authorization endpoint', cases);
