/** Bearer tokens (RFC 6750), revocation (RFC 7009), introspection (RFC 7662) and metadata (RFC 8414). */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  basic,
  callApi,
  type Fields,
  obtainCode,
  postForm,
  refresh,
  registerApplication,
  request,
  type SignedIn,
  startAuthorizationServer,
} from '../../test/support/authorization-server.ts';
import { type Bench, type Case, checkConformance, prepareTokens } from '../../test/support/conformance.ts';
import { createStorePlace, openTestStore } from '../../test/support/engines.ts';
import { type Store, statement } from '../database/store.ts';
import { Failure } from '../errors.ts';
import { realWorld } from '../world.ts';
import { setIntrospectionStep } from './application-store.ts';
import { createPersonalToken, revokePersonalToken } from './personal-token.ts';
import { createSecret, isSecretOf } from './secret-text.ts';
import { disableUserStep } from './user-store.ts';

const USER = '/api/v5/user';

const bearer: Case[] = [
  [
    'B01 B02 Authorization: Bearer on GET /api/v5/user answers the user, whatever the case of the scheme (contract, §2.1)',
    async (bench) => {
      const { tokens, person } = await prepareTokens(bench);
      for (const scheme of ['Bearer', 'bearer', 'BEARER', 'token']) {
        const answer = await request(bench.server.url + USER, {
          headers: { authorization: `${scheme} ${tokens.access_token}` },
        });
        assert.equal(answer.status, 200);
        assert.match(String(answer.json.id), /^[0-9a-f]{24}$/);
        assert.deepEqual([answer.json.login, answer.json.type], [person.user.login, 'User']);
      }
    },
  ],
  [
    'B01 the answer has the fields that clients of the platform read',
    async (bench) => {
      const { tokens } = await prepareTokens(bench);
      const answer = await request(bench.server.url + USER, { headers: { 'private-token': tokens.access_token } });
      const fields = 'avatar_url bio blog company email followers followers_url following html_url id login name';
      for (const name of [...fields.split(' '), 'top_languages', 'type', 'url']) assert.ok(name in answer.json, name);
    },
  ],
  [
    'B03 without a token 401 with a Bearer challenge and no error code (§3.1)',
    async (bench) => {
      const answer = await request(bench.server.url + USER);
      assert.equal(answer.status, 401);
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer realm="trivet"');
      assert.equal(answer.json.error_code_name, 'UNAUTHORIZED');
      assert.match(String(answer.json.trace_id), /^[0-9a-f]{32}$/);
    },
  ],
  [
    'B04 an unknown, garbled, expired or revoked token is 401 invalid_token (§3.1)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials } = await prepareTokens(bench);
      const expired = await prepareTokens(bench);
      await postForm(`${server.url}/oauth/revoke`, { token: tokens.access_token }, credentials);
      server.advance(0);
      const bad = [createSecret('access', server.world), 'x', tokens.access_token, tokens.refresh_token];
      for (const token of bad) {
        const answer = await request(server.url + USER, { headers: { authorization: `Bearer ${token}` } });
        assert.equal(answer.status, 401);
        assert.match(answer.headers.get('www-authenticate') ?? '', /error="invalid_token"/);
      }
      assert.equal(await callApi(server, expired.tokens.access_token), 200);
      server.advance(1_296_000_001);
      assert.equal(await callApi(server, expired.tokens.access_token), 401);
    },
  ],
  [
    'B05 a token without the scope is 403 insufficient_scope, with the scope that is needed (§3.1)',
    async (bench) => {
      const { tokens } = await prepareTokens(bench, 'all_hook');
      const headers = { authorization: `Bearer ${tokens.access_token}` };
      const answer = await request(bench.server.url + USER, { headers });
      assert.equal(answer.status, 403);
      assert.match(answer.headers.get('www-authenticate') ?? '', /error="insufficient_scope", scope="all_user"/);
      assert.equal(answer.json.error_code_name, 'FORBIDDEN');
    },
  ],
  [
    'B06 a token in two places at once is 400 invalid_request (§2)',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench);
      const token = tokens.access_token;
      const authorization = { authorization: `Bearer ${token}` };
      const path = `${server.url}${USER}`;
      const answers = [
        await request(`${path}?access_token=${token}`, { headers: authorization }),
        await request(path, { headers: { ...authorization, 'private-token': token } }),
        await request(`${path}?access_token=${token}&access_token=${token}`),
        await postForm(`${path}/access_tokens?access_token=${token}`, { access_token: token }),
      ];
      for (const answer of answers) {
        assert.equal(answer.status, 400, answer.text);
        assert.match(answer.headers.get('www-authenticate') ?? '', /error="invalid_request"/);
      }
    },
  ],
  [
    'B07 access_token in the query is taken (contract), is not to be stored and not in the log (§2.3)',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench);
      const answer = await request(`${server.url}${USER}?access_token=${tokens.access_token}`);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      assert.ok(!server.lines.join('\n').includes(tokens.access_token));
    },
  ],
  [
    'B07 access_token in a body is taken (contract), be it a form, JSON, or JSON that is called otherwise',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench);
      const form = new FormData();
      form.set('access_token', tokens.access_token);
      const json = JSON.stringify({ access_token: tokens.access_token });
      const bodies: [body: string | FormData, type: string | undefined][] = [
        [form, undefined],
        [`access_token=${tokens.access_token}`, 'application/x-www-form-urlencoded'],
        [json, 'application/json'],
        [json, 'Application/JSON; charset=UTF-8'],
        [json, 'application/x-www-form-urlencoded'],
        [json, 'text/plain'],
      ];
      for (const [body, type] of bodies) {
        const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
        const answer = await request(`${server.url}${USER}/access_tokens`, { method: 'POST', body, headers });
        // Known, and refused for what only a token of the user's own may do.
        assert.equal(answer.status, 403, `${type} ${answer.text}`);
      }
      const file = await request(`${server.url}${USER}/access_tokens`, {
        method: 'POST',
        body: json,
        headers: { 'content-type': 'application/octet-stream' },
      });
      assert.equal(file.status, 401);
    },
  ],
  [
    'B08 a revocation shows on the very next call, on every process',
    async (bench) => {
      const { server } = bench;
      const another = await bench.startAnother();
      const { tokens, credentials, person } = await prepareTokens(bench);
      const personal = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'x',
        scopes: ['all_user'],
        expiresAtMs: undefined,
      });
      for (const each of [server, another])
        for (const token of [tokens.access_token, personal.secret]) assert.equal(await callApi(each, token), 200);
      await postForm(`${server.url}/oauth/revoke`, { token: tokens.refresh_token }, credentials);
      assert.equal(await callApi(another, tokens.access_token), 401);
      const target = { userId: person.user.id, tokenId: personal.token.tokenId };
      await revokePersonalToken(another.store, server.world, target);
      assert.equal(await callApi(server, personal.secret), 401);
    },
  ],
];

const revocation: Case[] = [
  [
    'V01 a valid, an unknown and an already revoked token answer 200 without a body (RFC 7009 §2.2)',
    async (bench) => {
      const { tokens, credentials } = await prepareTokens(bench);
      const revoke = (token: string) => postForm(`${bench.server.url}/oauth/revoke`, { token }, credentials);
      for (const token of [tokens.access_token, tokens.access_token, createSecret('access', realWorld), 'garbage']) {
        const answer = await revoke(token);
        assert.deepEqual([answer.status, answer.text, answer.headers.get('cache-control')], [200, '', 'no-store']);
      }
      const anonymous = await postForm(`${bench.server.url}/oauth/revoke`, { token: tokens.refresh_token });
      assert.deepEqual([anonymous.status, anonymous.json.error], [401, 'invalid_client']);
    },
  ],
  [
    'V02 V03 a refresh token takes its access tokens with it; an access token dies alone (§2.1)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials } = await prepareTokens(bench);
      const revoke = (token: string) => postForm(`${server.url}/oauth/revoke`, { token }, credentials);
      await revoke(tokens.access_token);
      assert.equal(await callApi(server, tokens.access_token), 401);
      const next = (await refresh(server, tokens.refresh_token)).json;
      assert.equal(await callApi(server, String(next.access_token)), 200);
      await revoke(String(next.refresh_token));
      assert.equal(await callApi(server, String(next.access_token)), 401);
      assert.equal((await refresh(server, String(next.refresh_token))).json.error, 'invalid_grant');
    },
  ],
  [
    'V04 a token of another client is left alone (§2.1)',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench);
      const stranger = await registerApplication(server);
      for (const token of [tokens.access_token, tokens.refresh_token]) {
        const answer = await postForm(
          `${server.url}/oauth/revoke`,
          { token },
          basic(stranger.clientId, stranger.clientSecret),
        );
        assert.equal(answer.status, 200);
      }
      assert.equal(await callApi(server, tokens.access_token), 200);
    },
  ],
  [
    'V05 V06 a wrong or unknown token_type_hint does no harm; a missing token is invalid_request (§2.1)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials } = await prepareTokens(bench);
      const url = `${server.url}/oauth/revoke`;
      await postForm(url, { token: tokens.access_token, token_type_hint: 'refresh_token' }, credentials);
      assert.equal(await callApi(server, tokens.access_token), 401);
      await postForm(url, { token: tokens.refresh_token, token_type_hint: 'pineapple' }, credentials);
      assert.equal((await refresh(server, tokens.refresh_token)).status, 400);
      assert.equal((await postForm(url, {}, credentials)).json.error, 'invalid_request');
      assert.equal((await request(url)).status, 405);
    },
  ],
  [
    'V07 a public client revokes by its client_id (§2.1)',
    async (bench) => {
      const { server } = bench;
      const { clientId } = await registerApplication(server, { isPublic: true });
      const token = createSecret('refresh', realWorld);
      assert.equal((await postForm(`${server.url}/oauth/revoke`, { token, client_id: clientId })).status, 200);
    },
  ],
  [
    'V08 scripts of any origin may call the protocol endpoints',
    async (bench) => {
      for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/introspect', '/oauth/userinfo']) {
        const preflight = await request(bench.server.url + path, {
          method: 'OPTIONS',
          headers: { origin: 'https://spa.example', 'access-control-request-method': 'POST' },
        });
        assert.equal(preflight.status, 204);
        assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
        assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /Authorization/);
        const refused = await postForm(bench.server.url + path, {});
        assert.equal(refused.headers.get('access-control-allow-origin'), '*', 'errors too');
      }
    },
  ],
];

const INACTIVE = '{"active":false}';

const introspection: Case[] = [
  [
    'I01 I05 without authentication 401, for a client and for a bearer; GET is 405 (RFC 7662 §2.1)',
    async (bench) => {
      const url = `${bench.server.url}/oauth/introspect`;
      const { tokens, clientId } = await prepareTokens(bench);
      const fields = { token: tokens.access_token };
      assert.equal((await postForm(url, fields)).status, 401);
      assert.equal((await postForm(url, fields, basic(clientId, 'wrong'))).status, 401);
      assert.equal((await postForm(url, { ...fields, client_id: clientId })).status, 401);
      const bad = await postForm(url, fields, { authorization: 'Bearer x' });
      assert.equal(bad.status, 401);
      assert.match(bad.headers.get('www-authenticate') ?? '', /^Bearer /);
      assert.equal((await request(url)).status, 405);
      const own = await postForm(url, fields, { authorization: `Bearer ${tokens.access_token}` });
      assert.equal(own.json.active, true);
    },
  ],
  [
    'I02 I06 a live access token is described, and the answer is not to be stored (§2.2)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials, clientId, person } = await prepareTokens(bench);
      const answer = await postForm(`${server.url}/oauth/introspect`, { token: tokens.access_token }, credentials);
      const { exp, iat, ...rest } = answer.json;
      assert.deepEqual(rest, {
        active: true,
        scope: 'all_user all_hook',
        client_id: clientId,
        username: person.user.login,
        token_type: 'Bearer',
        sub: person.user.id,
        iss: server.url,
      });
      assert.equal(Number(exp) - Number(iat), 1_296_000);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
    },
  ],
  [
    'I03 I07 I08 unknown, expired, revoked, foreign, garbled tokens and those of a disabled person are exactly {"active":false} (§2.2)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials, person } = await prepareTokens(bench);
      const foreign = await prepareTokens(bench);
      const ask = async (token: string) =>
        (await postForm(`${server.url}/oauth/introspect`, { token }, credentials)).text;
      for (const token of [
        createSecret('access', realWorld),
        'x',
        foreign.tokens.access_token,
        foreign.tokens.refresh_token,
      ])
        assert.equal(await ask(token), INACTIVE);
      await server.store.writeAll([disableUserStep(person.user.id, server.world.nowMs())]);
      assert.equal(await ask(tokens.access_token), INACTIVE);
      assert.equal(await ask(tokens.refresh_token), INACTIVE);
    },
  ],
  [
    'I04 a refresh token is described by its own state, without token_type (§2.2)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials } = await prepareTokens(bench);
      const ask = async (token: string) =>
        (await postForm(`${server.url}/oauth/introspect`, { token }, credentials)).json;
      const described = await ask(tokens.refresh_token);
      assert.deepEqual([described.active, described.token_type], [true, undefined]);
      assert.equal(Number(described.exp) - Number(described.iat), 90 * 86_400);
      await refresh(server, tokens.refresh_token);
      assert.deepEqual(await ask(tokens.refresh_token), { active: false });
    },
  ],
  [
    'I07 an application with the role of a resource server sees the tokens of others, personal ones too',
    async (bench) => {
      const { server } = bench;
      const { tokens, person } = await prepareTokens(bench);
      const resource = await registerApplication(server);
      await server.store.writeAll([setIntrospectionStep(resource.clientId, 1)]);
      const { secret } = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'x',
        scopes: ['all_hook'],
        expiresAtMs: undefined,
      });
      const credentials = basic(resource.clientId, resource.clientSecret);
      for (const token of [tokens.access_token, secret]) {
        const { json } = await postForm(`${server.url}/oauth/introspect`, { token }, credentials);
        assert.deepEqual([json.active, json.sub], [true, person.user.id]);
      }
    },
  ],
];

const metadata: Case[] = [
  [
    'M01 M02 M03 M05 M06 M07 the metadata names this issuer, working endpoints, iss support, and is open and cacheable (RFC 8414 §3)',
    async (bench) => {
      const { server } = bench;
      const paths = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'];
      for (const path of paths) {
        const answer = await request(server.url + path, { headers: { origin: 'https://spa.example' } });
        assert.equal(answer.status, 200);
        assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
        assert.equal(answer.headers.get('access-control-allow-origin'), '*');
        assert.match(answer.headers.get('cache-control') ?? '', /max-age/);
        assert.equal(answer.json.issuer, server.url);
        assert.equal(answer.json.authorization_response_iss_parameter_supported, true);
        for (const value of Object.values(answer.json)) {
          assert.notEqual(value, null);
          if (Array.isArray(value)) assert.ok(value.length > 0);
        }
        const endpoints = Object.entries(answer.json).filter(
          ([name]) => name.endsWith('_endpoint') || name === 'jwks_uri',
        );
        assert.equal(endpoints.length, 7);
        for (const [, url] of endpoints) {
          const [get, post] = [await request(String(url)), await postForm(String(url), {})];
          assert.ok(get.status !== 404 && post.status !== 404, String(url));
        }
      }
    },
  ],
  [
    'M04 P07 what the metadata lists is what is taken',
    async (bench) => {
      const { json } = await request(`${bench.server.url}/.well-known/oauth-authorization-server`);
      assert.deepEqual(json.code_challenge_methods_supported, ['S256']);
      assert.deepEqual(json.response_types_supported, ['code']);
      for (const grantType of json.grant_types_supported as string[]) {
        const answer = await postForm(`${bench.server.url}/oauth/token`, { grant_type: grantType });
        assert.notEqual(answer.json.error, 'unsupported_grant_type', grantType);
      }
      for (const grantType of ['password', 'implicit'])
        assert.equal(
          (await postForm(`${bench.server.url}/oauth/token`, { grant_type: grantType })).json.error,
          'unsupported_grant_type',
          'S01 no implicit, no password grant',
        );
    },
  ],
  [
    'M09 the resource API names its authorization server (RFC 9728)',
    async (bench) => {
      const { json } = await request(`${bench.server.url}/.well-known/oauth-protected-resource`);
      assert.deepEqual(json.authorization_servers, [bench.server.url]);
    },
  ],
];

checkConformance('bearer tokens', bearer);
checkConformance('revocation', revocation);
checkConformance('introspection', introspection);
checkConformance('metadata', metadata);

test('a secret carries its kind and a checksum, so that a typing error is refused without asking the store', () => {
  for (const kind of ['access', 'refresh', 'personal', 'code', 'device', 'client'] as const) {
    const secret = createSecret(kind, realWorld);
    assert.ok(isSecretOf(kind, secret));
    for (const other of ['access', 'refresh', 'personal', 'code', 'device', 'client'] as const)
      assert.equal(isSecretOf(other, secret), other === kind);
    const flipped = secret.slice(0, 20) + (secret[20] === 'a' ? 'b' : 'a') + secret.slice(21);
    assert.equal(isSecretOf(kind, flipped), false);
  }
});

/** What the person made by hand, with the same scope as the application's token. */
async function makePersonal({ server }: Bench, { user }: SignedIn): Promise<string> {
  const form = { userId: user.id, name: 'by hand', scopes: ['all_user', 'all_hook'] as const, expiresAtMs: undefined };
  return (await createPersonalToken(server.store, server.world, form)).secret;
}

const API: Case[] = [
  [
    'an application cannot make tokens or change applications in the name of its user, or it would outlive its consent',
    async (bench) => {
      const { server } = bench;
      const { tokens, person } = await prepareTokens(bench);
      const own = await registerApplication(server, {}, person.user.id);
      const call = (path: string, method: string, body: object) =>
        request(`${server.url}${USER}${path}`, {
          method,
          headers: { authorization: `Bearer ${tokens.access_token}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
      const form = { name: 'x', scopes: ['all_user'], redirect_uris: ['https://x.example/'] };
      assert.equal((await call('/access_tokens', 'POST', form)).status, 403);
      assert.equal((await call('/applications', 'POST', form)).status, 403);
      for (const [path, method] of [
        [`/applications/${own.clientId}`, 'PATCH'],
        [`/applications/${own.clientId}`, 'DELETE'],
        [`/applications/${own.clientId}/secrets`, 'POST'],
        [`/applications/${own.clientId}/secrets/1`, 'DELETE'],
      ] as const)
        assert.equal((await call(path, method, {})).status, 403, path);
    },
  ],
  [
    'a personal token is made, listed without its text, used and revoked by API',
    async (bench) => {
      const { server } = bench;
      const personal = await makePersonal(bench, (await prepareTokens(bench)).person);
      const call = (path: string, init: RequestInit = {}) =>
        request(`${server.url}${USER}${path}`, {
          ...init,
          headers: { authorization: `Bearer ${personal}`, 'content-type': 'application/json' },
        });
      const body = JSON.stringify({ name: 'ci', scopes: ['all_user'], expires_in_days: 7 });
      const made = await call('/access_tokens', { method: 'POST', body });
      assert.equal(made.status, 201, made.text);
      assert.equal(made.headers.get('cache-control'), 'no-store');
      const token = String(made.json.token);
      assert.equal(await callApi(server, token), 200);
      const listed = await call('/access_tokens');
      assert.ok(!listed.text.includes(token));
      const more = JSON.stringify({ name: 'ci', scopes: ['all_key'] });
      assert.equal((await call('/access_tokens', { method: 'POST', body: more })).status, 403, 'no scope it has not');
      const unknown = JSON.stringify({ name: 'ci', scopes: ['everything'] });
      assert.equal((await call('/access_tokens', { method: 'POST', body: unknown })).status, 400);
      assert.equal((await call(`/access_tokens/${String(made.json.id)}`, { method: 'DELETE' })).status, 204);
      assert.equal((await call(`/access_tokens/${String(made.json.id)}`, { method: 'DELETE' })).status, 404);
      assert.equal(await callApi(server, token), 401);
    },
  ],
  [
    'a personal token ends with its time and shows when it was last used',
    async (bench) => {
      const { server } = bench;
      const { person } = await prepareTokens(bench);
      const { secret } = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'x',
        scopes: ['all_user'],
        expiresAtMs: server.world.nowMs() + 1000,
      });
      const listing = () =>
        request(`${server.url}${USER}/access_tokens`, { headers: { 'private-token': secret } }).then(
          (answer) => JSON.parse(answer.text) as Fields[],
        );
      await listing();
      const used = await waitFor(async () => (await listing())[0]?.last_used_at);
      assert.match(used, /Z$/);
      server.advance(1001);
      assert.equal(await callApi(server, secret), 401);
    },
  ],
  [
    'S11 an application, whose id is no user id, is registered, changed, given a second secret and deleted by API; nobody else sees it',
    async (bench) => {
      const { server } = bench;
      const personal = await makePersonal(bench, (await prepareTokens(bench)).person);
      const stranger = await makePersonal(bench, (await prepareTokens(bench)).person);
      const caller =
        (token: string) =>
        (path: string, method = 'GET', body?: object) =>
          request(`${server.url}${USER}/applications${path}`, {
            method,
            headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          });
      const call = caller(personal);
      const form = { name: 'App', redirect_uris: ['https://app.example/cb'] };
      const made = await call('', 'POST', form);
      assert.equal(made.status, 201, made.text);
      const path = `/${String(made.json.client_id)}`;
      assert.match(String(made.json.client_id), /^app_/);
      assert.ok(isSecretOf('client', String(made.json.client_secret)));
      assert.equal((await call('', 'POST', { ...form, redirect_uris: ['http://app.example/'] })).status, 400);
      assert.equal((await caller(stranger)(path)).status, 404);
      assert.equal((await caller(stranger)(path, 'DELETE')).status, 404);
      const changed = await call(path, 'PATCH', { name: 'Renamed' });
      assert.deepEqual([changed.json.name, changed.json.redirect_uris], ['Renamed', form.redirect_uris]);
      const second = await call(`${path}/secrets`, 'POST');
      assert.equal(second.status, 201);
      assert.equal((await call(`${path}/secrets`, 'POST')).status, 409, 'two live at most');
      for (const secret of [made.json.client_secret, second.json.client_secret])
        assert.equal((await authenticate(bench, made.json.client_id, secret)).status, 200);
      assert.equal((await call(`${path}/secrets/1`, 'DELETE')).status, 204);
      assert.equal((await authenticate(bench, made.json.client_id, made.json.client_secret)).status, 401);
      assert.equal((await call(`${path}/secrets/2`, 'DELETE')).status, 409, 'never the last one');
      assert.equal((await call(path, 'DELETE')).status, 204);
      assert.equal((await call(path)).status, 404);
    },
  ],
  [
    'a secret that travelled in a query is remarked on the application',
    async (bench) => {
      const { server } = bench;
      const person = await prepareTokens(bench);
      const created = await registerApplication(server, {}, person.person.user.id);
      const query = new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: 'x',
        client_id: created.clientId,
        client_secret: created.clientSecret,
      });
      await request(`${server.url}/oauth/token?${query.toString()}`, { method: 'POST' });
      const seen = await waitFor(async () => {
        const headers = { authorization: `Bearer ${person.tokens.access_token}` };
        const { json } = await request(`${server.url}${USER}/applications/${created.clientId}`, { headers });
        return json.secret_seen_in_query_at as string | null;
      });
      assert.match(seen, /Z$/);
    },
  ],
];

function authenticate({ server }: Bench, clientId: unknown, secret: unknown) {
  return postForm(`${server.url}/oauth/revoke`, { token: 'x' }, basic(String(clientId), String(secret)));
}

/** For what is written after the answer. */
async function waitFor<T>(find: () => Promise<T | null | undefined>): Promise<T> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const found = await find();
    if (found !== undefined && found !== null) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('It never came');
}

const atRest: Case[] = [
  [
    'S08 the files of the database hold no usable token, code or secret',
    async (bench) => {
      const { server, context } = bench;
      const { tokens, clientSecret, person, clientId } = await prepareTokens(bench);
      const next = (await refresh(server, tokens.refresh_token)).json;
      const code = await obtainCode(server, person, { client_id: clientId });
      const { secret } = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'x',
        scopes: ['all_user'],
        expiresAtMs: undefined,
      });
      const secrets = [tokens.access_token, tokens.refresh_token, clientSecret, code, secret];
      secrets.push(String(next.access_token), String(next.refresh_token), person.cookie.split('=')[1] ?? '');
      const dump = context.engine === 'sqlite' ? readFiles(context.place.dataDir) : await dumpTables(server.store);
      assert.ok(dump.includes(clientId), 'the dump is one');
      for (const text of secrets) assert.ok(!dump.includes(text));
    },
  ],
];

function readFiles(folder: string): string {
  return readdirSync(folder)
    .filter((name) => name.startsWith('trivet.db'))
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join('');
}

const TABLES = ['applications', 'application_secrets', 'authorization_codes', 'token_families', 'refresh_tokens'];

async function dumpTables(store: Store): Promise<string> {
  const tables = [...TABLES, 'access_tokens', 'personal_tokens', 'sessions', 'audit_events', 'consents'];
  const rows = await Promise.all(
    tables.map((table) => store.read(statement(`test-dump-${table}`, `SELECT * FROM ${table}`))),
  );
  return rows.flat().flatMap(Object.values).map(describeValue).join('\n');
}

function describeValue(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value);
}

checkConformance('the user API', API);
checkConformance('at rest', atRest);

test('V09 while the database is away the answer is 503 with Retry-After, and no success', async (t) => {
  const place = await createStorePlace('sqlite');
  t.after(() => rmSync(place.dataDir, { recursive: true, force: true }));
  await using store = await openTestStore(place);
  let isAway = false;
  const checkPresent = async () => {
    if (isAway) throw new Failure('unavailable', 'Cannot use the database', { retryAfterSeconds: 1 });
  };
  const away: Store = {
    ...store,
    read: (...parameters) => checkPresent().then(() => store.read(...parameters)),
    recall: (...parameters) => checkPresent().then(() => store.recall(...parameters)),
    [Symbol.asyncDispose]: async () => {},
  };
  await using server = await startAuthorizationServer(away);
  const { clientId, clientSecret } = await registerApplication(server);
  isAway = true;
  const token = createSecret('access', realWorld);
  const answer = await postForm(`${server.url}/oauth/revoke`, { token }, basic(clientId, clientSecret));
  assert.deepEqual([answer.status, answer.json.error], [503, 'temporarily_unavailable']);
  assert.equal(answer.headers.get('retry-after'), '1');
});
