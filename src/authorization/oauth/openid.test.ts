/** Identity tokens and userinfo (OpenID Connect Core). */
import assert from 'node:assert/strict';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { assertRedirectedError, prepareRequest } from '../../../test/support/authorization/authorization-requests.ts';
import {
  authorize,
  callApi,
  createPerson,
  type Fields,
  obtainCode,
  obtainTokens,
  postForm,
  readRedirect,
  refresh,
  registerApplication,
  request,
} from '../../../test/support/authorization/authorization-server.ts';
import {
  type Bench,
  type Case,
  checkConformance,
  prepareExchange,
  prepareParties,
  prepareTokens,
} from '../../../test/support/authorization/conformance.ts';
import { statement } from '../../database/store.ts';
import { permits } from '../../scopes.ts';
import { computeTokenHash } from './protocol/id-token.ts';

const hideSigningKeysSql = statement('test-hide-signing-keys', 'ALTER TABLE signing_keys RENAME TO hidden_keys');
const showSigningKeysSql = statement('test-show-signing-keys', 'ALTER TABLE hidden_keys RENAME TO signing_keys');

async function signInWithOpenId({ server }: Bench, extra: Fields = {}) {
  const person = await createPerson(server);
  const { clientId, clientSecret } = await registerApplication(server);
  const query = { client_id: clientId, scope: 'openid all_user', nonce: 'n-0S6', ...extra };
  const code = await obtainCode(server, person, query);
  const client = { client_id: clientId, client_secret: clientSecret };
  const { json } = await postForm(`${server.url}/oauth/token`, { grant_type: 'authorization_code', code, ...client });
  const jwks = (await request(`${server.url}/oauth/jwks`)).json as unknown as JSONWebKeySet;
  return { person, clientId, json, jwks };
}

async function askUserinfo({ server }: Bench, { access_token: token }: Readonly<Record<string, unknown>>) {
  const headers = { authorization: `Bearer ${String(token)}` };
  return (await request(`${server.url}/oauth/userinfo`, { headers })).json;
}

const openid: Case[] = [
  [
    'O01 O02 O03 O04 O05 the identity token is signed by a published key and carries iss, sub, aud, nonce, at_hash and auth_time (§2)',
    async (bench) => {
      const { person, clientId, json, jwks } = await signInWithOpenId(bench);
      const verified = await jwtVerify(String(json.id_token), createLocalJWKSet(jwks), {
        issuer: bench.server.url,
        audience: clientId,
        algorithms: ['RS256'],
        currentDate: new Date(bench.server.world.nowMs()),
      });
      assert.equal(verified.payload.sub, person.user.id);
      assert.equal(verified.payload.nonce, 'n-0S6');
      assert.equal(verified.payload.at_hash, computeTokenHash(String(json.access_token)));
      assert.equal(typeof verified.payload.auth_time, 'number');
      assert.ok(!JSON.stringify(jwks).includes('"d"'), 'no private part');
      const again = await signInWithOpenId(bench);
      assert.notEqual(again.person.user.id, person.user.id);
    },
  ],
  [
    'userinfo answers the subject for openid and the profile with all_user, and nothing without openid (§5.3)',
    async (bench) => {
      const { server } = bench;
      const { person, json } = await signInWithOpenId(bench);
      const ask = (token: unknown) =>
        request(`${server.url}/oauth/userinfo`, { headers: { authorization: `Bearer ${String(token)}` } });
      const { user } = person;
      assert.deepEqual((await ask(json.access_token)).json, {
        sub: user.id,
        name: user.name,
        preferred_username: user.login,
        email: user.email,
        email_verified: true,
      });
      const only = await signInWithOpenId(bench, { scope: 'openid' });
      assert.deepEqual((await ask(only.json.access_token)).json, { sub: only.person.user.id });
      const plain = await obtainTokens(server, person, await registerApplication(server));
      assert.equal((await ask(plain.access_token)).status, 403);
      assert.equal((await ask('x')).status, 401);
    },
  ],
  [
    'the page shows profile and email, and userinfo answers the claims of those that the person allows (§5.4)',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields } = await prepareRequest(bench);
      const page = await authorize(server, cookie, { ...fields, scope: 'openid profile email' });
      for (const scope of ['openid', 'profile', 'email']) assert.match(page.text, new RegExp(`<code>${scope}</code>`));
      const both = await signInWithOpenId(bench, { scope: 'openid profile email' });
      const { user } = both.person;
      const names = { name: user.name, preferred_username: user.login };
      const address = { email: user.email, email_verified: true };
      assert.equal(both.json.scope, 'openid profile email');
      assert.deepEqual(await askUserinfo(bench, both.json), { sub: user.id, ...names, ...address });
      const one = await signInWithOpenId(bench, { scope: 'openid email' });
      const { id: sub, email } = one.person.user;
      assert.deepEqual(await askUserinfo(bench, one.json), { sub, email, email_verified: true });
    },
  ],
  [
    'profile and email allow no call of the API and no prediction',
    async (bench) => {
      const { server } = bench;
      const { person, ...application } = await prepareParties(bench);
      const all = await obtainTokens(server, person, application, 'openid profile email');
      assert.equal(await callApi(server, all.access_token), 403);
      const identity = { scopes: ['profile', 'email'], repositories: undefined };
      for (const scope of ['predict', 'observe', 'all_user']) assert.equal(permits(identity, scope), false);
      const resource = await request(`${server.url}/.well-known/oauth-protected-resource`);
      for (const scope of ['openid', 'profile', 'email'])
        assert.ok(!(resource.json.scopes_supported as string[]).includes(scope));
    },
  ],
  [
    'profile and email are left out of a request without openid, and are invalid_scope alone',
    async (bench) => {
      const { server } = bench;
      const { cookie, fields } = await prepareRequest(bench);
      const refused = await authorize(server, cookie, { ...fields, scope: 'profile email' });
      assertRedirectedError(bench, refused, 'invalid_scope');
      assert.match(readRedirect(refused).get('error_description') ?? '', /profile and email .* openid/);
      for (const [asked, granted] of [
        ['all_user profile email', 'all_user'],
        ['read_user email', 'all_user'],
        ['predict profile', 'predict'],
      ] as const)
        assert.equal((await prepareTokens(bench, asked)).tokens.scope, granted);
      const { tokens } = await prepareTokens(bench, 'openid profile email');
      const answer = await refresh(server, tokens.refresh_token, { scope: 'profile email' });
      assert.deepEqual([answer.status, answer.json.error], [400, 'invalid_scope']);
    },
  ],
  [
    'the scopes of OpenID Connect do not hide the names of other code hosts, which are translated beside them',
    async (bench) => {
      for (const [asked, granted] of [
        ['openid read_user', 'all_user openid'],
        ['openid user_info hook', 'all_user all_hook openid'],
        ['openid profile email all_hook user_info', 'all_hook openid profile email'],
      ] as const)
        assert.equal((await prepareTokens(bench, asked)).tokens.scope, granted);
    },
  ],
  [
    'an exchange that fails for the signing keys spends no code, and succeeds when it is sent again',
    async (bench) => {
      const { server } = bench;
      const { exchange, tokenUrl } = await prepareExchange(bench, 'openid all_user');
      await server.store.write(hideSigningKeysSql);
      const failed = await postForm(tokenUrl, exchange);
      await server.store.write(showSigningKeysSql);
      assert.ok(failed.status >= 500, failed.text);
      const { status, json } = await postForm(tokenUrl, exchange);
      assert.deepEqual([status, typeof json.id_token], [200, 'string']);
      assert.equal(await callApi(server, String(json.access_token)), 200);
    },
  ],
];

checkConformance('OpenID Connect', openid);
